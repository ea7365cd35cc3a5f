"""A misspelt category is refused, with the nearest of those there are, or all of them."""

import pytest

from gatewayfilter.errors import UnknownCategoryError
from gatewayfilter.use_cases.category_names import check_category

KNOWN = {"", "gambling", "adult", "fraud"}


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_a_known_category_passes(name: str) -> None:
    check_category(name, KNOWN)


@pytest.mark.parametrize(
    ("name", "hint"),
    [("gamling", "did you mean 'gambling'?"), ("adlut", "did you mean 'adult'?"), ("xyz", "there are adult, fraud, gambling")],
)
def test_an_unknown_one_is_refused_with_a_hint(name: str, hint: str) -> None:
    with pytest.raises(UnknownCategoryError) as refused:
        check_category(name, KNOWN)
    assert str(refused.value) == f"there is no category {name!r}; {hint}"

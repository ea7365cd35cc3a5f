"""Password hashes for tests, at the least cost that argon2 takes: some 30 ms less each. `full_cost` is for tests of the cost."""

from collections.abc import Iterator

import pytest

from gatewayfilter.use_cases.access import passwords

_FULL = {name: getattr(passwords, name) for name in ("_MEMORY_KIB", "_PASSES", "_OF_NO_PASSWORD")}
_LEAST = {"_MEMORY_KIB": 8, "_PASSES": 1, "_OF_NO_PASSWORD": f"$argon2id$v=19$m=8,t=1,p=1${'A' * 22}${'A' * 43}"}


def _set(patch: pytest.MonkeyPatch, values: dict[str, object]) -> None:
    for name, value in values.items():
        patch.setattr(passwords, name, value)


def install() -> None:
    """Has all of this process make cheap hashes."""
    _set(pytest.MonkeyPatch(), _LEAST)


@pytest.fixture
def full_cost() -> Iterator[None]:
    """Has a test make the hashes that the product makes."""
    with pytest.MonkeyPatch.context() as patch:
        _set(patch, _FULL)
        yield

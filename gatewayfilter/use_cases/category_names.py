"""Category names as users type them: a misspelt one is refused instead of making a category that nothing uses."""

from collections.abc import Collection
from difflib import get_close_matches

from gatewayfilter.errors import UnknownCategoryError


def check_category(name: str, known: Collection[str]) -> None:
    """Checks the name of a category as typed.

    Raises:
        UnknownCategoryError: it is none of those that are known; names the nearest.
    """
    if name in known:
        return
    near = get_close_matches(name, sorted(known), cutoff=0.6)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(set(known) - {''}))}"
    raise UnknownCategoryError(f"there is no category {name!r}; {hint}")

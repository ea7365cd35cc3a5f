"""Category names as users type them: a misspelt one is refused instead of making a category that nothing uses."""

from __future__ import annotations

from collections.abc import Callable, Collection
from difflib import get_close_matches
from typing import Any

import click

from gatewayfilter.errors import ListError


def new_category_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --new-category, the parameter `new_category`."""
    return click.option("--new-category", is_flag=True, help="Make the category if there is none of this name.")(command)


def check_category(name: str, known: Collection[str], *, new: bool) -> None:
    """Checks a category name as typed.

    Args:
        name: the category.
        known: names of all categories.
        new: accept an unknown one.

    Raises:
        ListError: it is unknown; names the nearest.
    """
    if new or name in known:
        return
    near = get_close_matches(name, sorted(known), n=1, cutoff=0.6)
    hint = f"did you mean {near[0]!r}? Otherwise" if near else f"there are {', '.join(sorted(set(known) - {''}))};"
    raise ListError(f"there is no category {name!r}; {hint} --new-category makes it")

"""The option --new-category, and the hint to it where a category is not known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from gatewayfilter.errors import ListError, UnknownCategoryError


def new_category_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --new-category, the parameter `new_category`."""
    return click.option("--new-category", is_flag=True, help="Make the category if there is none of this name.")(command)


@contextmanager
def hint_at_new_category() -> Iterator[None]:
    """Names the option where a category is not known.

    Raises:
        ListError: in place of `UnknownCategoryError`.
    """
    try:
        yield
    except UnknownCategoryError as error:
        joint = " Otherwise" if str(error).endswith("?") else ";"
        raise ListError(f"{error}{joint} --new-category makes it") from error

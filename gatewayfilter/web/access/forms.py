"""Forms whose fields vary: all that a browser sends, as text."""

from typing import Annotated

from fastapi import Depends, Request
from starlette.datastructures import FormData

_LONGEST = 200_000


class Fields:
    """The fields of a form; files among them are ignored.

    Args:
        data: as the browser sent it.
    """

    def __init__(self, data: FormData) -> None:
        self._items = [(name, value[:_LONGEST]) for name, value in data.multi_items() if isinstance(value, str)]

    def text(self, name: str, default: str = "") -> str:
        """Returns the first value of a field, without spaces around it."""
        return next((value.strip() for key, value in self._items if key == name), default)

    def all(self, name: str) -> list[str]:
        """Returns all values of a field."""
        return [value for key, value in self._items if key == name]

    def number(self, name: str) -> float | None:
        """Returns the first value of a field as a number, `None` when it is none."""
        try:
            return float(self.text(name))
        except ValueError:
            return None

    def items(self) -> list[tuple[str, str]]:
        """Returns all fields in their order."""
        return self._items


async def form_fields(request: Request) -> Fields:
    """Returns the fields of the request's form."""
    return Fields(await request.form())


Form = Annotated[Fields, Depends(form_fields)]
"""The fields of a form."""

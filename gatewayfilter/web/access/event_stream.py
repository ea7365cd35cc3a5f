"""Server-sent events: their format, and the bounds of a stream."""

from typing import Final

EVERY_S: Final = 0.5
"""Interval between two batches."""
LONGEST_S: Final = 600.0
"""A stream ends after this time, and the browser connects again: a session that has ended sees nothing more."""
STREAM_HEADERS: Final = {"cache-control": "no-store", "x-accel-buffering": "no"}


def event(name: str, data: str, number: int | None = None) -> str:
    """Returns an event. Line breaks in `data` are kept.

    Args:
        name: its type.
        data: one text.
        number: its id, with which the browser continues after a pause.
    """
    lines = "".join(f"data: {line}\n" for line in data.splitlines())
    identity = f"id: {number}\n" if number is not None else ""
    return f"{identity}event: {name}\n{lines}\n"

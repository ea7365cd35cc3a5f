"""Calls of a C library with a bound on their time, for calls that may never return."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class StuckCallError(Exception):
    """A call did not return in time; its thread is given up."""


class BoundedCall(threading.Thread):
    """One call, in a thread of its own that ends with the process. Costs some 0.1 ms.

    Args:
        call: what is called.
    """

    def __init__(self, call: Callable[[], object]) -> None:
        super().__init__(name="bounded-call", daemon=True)
        self._call = call
        self._error: BaseException | None = None

    def run(self) -> None:
        """Calls it."""
        try:
            self._call()
        except BaseException as error:  # noqa: BLE001  raised again in the caller's thread
            self._error = error

    def within(self, seconds: float) -> None:
        """Starts the call and waits for its end.

        Raises:
            StuckCallError: it did not return in time.
            BaseException: what the call raised.
        """
        self.start()
        self.join(seconds)
        if self.is_alive():
            raise StuckCallError
        if self._error is not None:
            raise self._error

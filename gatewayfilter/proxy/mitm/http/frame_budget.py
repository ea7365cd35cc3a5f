"""How often the other side of an HTTP/2 connection may cause work that leads to nothing: so often at once, and a second.

A browser that leaves a page resets its requests, and what it uploads to a blocked page is on its way when the stream is reset.
"""

import time
from typing import Final

import h2.events

MOST_CALLS: Final = 1_000
"""At once."""
CALLS_A_SECOND: Final = 50.0


class FrameBudget:
    """What an end of a connection has left; a base of mitmproxy's layers."""

    _calls_left: float = MOST_CALLS
    _counted_at: float = 0.0

    def may_call(self) -> bool:
        """Counts a frame. Returns whether it was within the budget."""
        now = time.monotonic()
        if self._counted_at:
            self._calls_left = min(self._calls_left + (now - self._counted_at) * CALLS_A_SECOND, MOST_CALLS)
        self._counted_at = now
        self._calls_left -= 1
        return self._calls_left >= 0


def is_empty(event: h2.events.Event) -> bool:
    """Returns whether an event is of a body's frame that neither carries nor ends anything (CVE-2019-9518)."""
    return isinstance(event, h2.events.DataReceived) and not event.data and event.stream_ended is None

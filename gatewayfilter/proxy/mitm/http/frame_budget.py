"""How often the other side of an HTTP/2 connection may cause work that leads to nothing: so often at once, and a second.

A browser that leaves a page resets its requests, and what it uploads to a blocked page is on its way when the stream is reset.
gRPC sends a ping in each round trip while data comes, to find out what the connection carries: these lead to something.
"""

import time
from typing import Final

import h2.events

MOST_CALLS: Final = 1_000
"""At once."""
CALLS_A_SECOND: Final = 50.0
_BYTES_A_PING: Final = 4_096
"""Of data that is sent: what goes out at once may come in several round trips. gRPC grants windows of 16 KB and more."""

_CALLS: Final = (
    h2.events.AlternativeServiceAvailable,
    h2.events.InformationalResponseReceived,
    h2.events.PingAckReceived,
    h2.events.PingReceived,
    h2.events.PriorityUpdated,
    h2.events.RemoteSettingsChanged,
    h2.events.SettingsAcknowledged,
    h2.events.StreamReset,
    h2.events.UnknownFrameReceived,
)


class FrameBudget:
    """What an end of a connection has left; a base of mitmproxy's layers."""

    _calls_left: float = MOST_CALLS
    _counted_at: float = 0.0
    _pings: int = 0
    """Pings that go with the data which was sent."""

    def note_sent(self, size: int) -> None:
        """Takes note of data for the other side, of so many bytes."""
        self._pings += 1 + size // _BYTES_A_PING

    def may_call(self) -> bool:
        """Counts a frame. Returns whether it was within the budget."""
        now = time.monotonic()
        if self._counted_at:
            self._calls_left = min(self._calls_left + (now - self._counted_at) * CALLS_A_SECOND, MOST_CALLS)
        self._counted_at = now
        self._calls_left -= 1
        return self._calls_left >= 0

    def may_cause(self, event: h2.events.Event) -> bool:
        """Counts a frame by its event, unless it is a ping that goes with data. Returns whether it was within the budget."""
        if self._pings and isinstance(event, h2.events.PingReceived):
            self._pings = min(self._pings, MOST_CALLS) - 1
            return True
        return self.may_call()


def is_call(event: h2.events.Event) -> bool:
    """Returns whether an event is counted, also of a body's frame that neither carries nor ends anything (CVE-2019-9518)."""
    if isinstance(event, h2.events.DataReceived):
        return not event.data and event.stream_ended is None
    return isinstance(event, _CALLS)

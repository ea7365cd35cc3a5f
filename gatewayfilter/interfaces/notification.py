"""Notifications of the operator: what happened, and how far the channels are that send them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Notification:
    """One event that the operator is notified of.

    Attributes:
        number: ascending; the same in every channel and at every try.
        event: `request`, `source`, `device` or `test`.
        at: Unix seconds.
        facts: JSON values by name.
    """

    number: int
    event: str
    at: float
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ChannelState:
    """How far a channel is.

    Attributes:
        last_id: number of the newest notification that was sent or dropped.
        sent_at: Unix seconds of the last message.
        failures: tries in a row that failed.
        retry_at: Unix seconds before which there is no further try.
        failing_since: Unix seconds of the first of these failures, 0 without any.
        error: why the last try failed, `""` when it arrived.
    """

    last_id: int
    sent_at: float = 0.0
    failures: int = 0
    retry_at: float = 0.0
    failing_since: float = 0.0
    error: str = ""


class NotificationStore(Protocol):
    """Notifications that wait to be sent."""

    def add(self, event: str, what: str, at: float, facts: Mapping[str, object]) -> bool:
        """Adds a notification; `what` is notified of once. Returns whether it is new."""
        ...

    def after(self, last_id: int, limit: int) -> Sequence[Notification]:
        """Returns the notifications with a number above this one, the oldest first."""
        ...

    def channel(self, name: str, since: float = ...) -> ChannelState:
        """Returns the state of a channel; a new one begins with the notifications of this time, by default with the next one."""
        ...

    def put_channel(self, name: str, state: ChannelState) -> None:
        """Stores the state of a channel."""
        ...

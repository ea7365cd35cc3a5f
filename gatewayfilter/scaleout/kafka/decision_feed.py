"""The filter's own decisions as messages of Kafka, read from the decision log.

The log is the spool: what Kafka has not acknowledged is still there, within the log's own bounds, and the position in it is
stored beside it. So a decision is sent at least once, and its key is the same each time. A message has the fields of a traffic
record (`scaleout.stream.batch.RECORD`) with the verdict behind: stream workers and the Spark job read it, and it has the form of
their answers.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gatewayfilter.interfaces import LogFollowers
    from gatewayfilter.model import LogRecord
    from gatewayfilter.telemetry import Counters

FOLLOWER: Final = "kafka"
"""The name under which the position in the log is stored."""
BATCH: Final = 2_000
"""Records that are sent together: 8 MB at most, and what is sent again after a kill."""
_CUT: Final = re.compile(r"… \(\d+ characters\)$")


class Send(Protocol):
    """Sends messages, each a key and a value, and returns when all are acknowledged."""

    def send(self, topic: str, letters: Sequence[tuple[bytes, bytes]]) -> None:
        """Raises a `GatewayFilterError` when they are not."""
        ...


@dataclass(frozen=True, slots=True)
class FeedState:
    """How far the log is sent.

    Attributes:
        position: id of the newest decision that Kafka has, `None` before the first start.
        waiting: decisions behind it, at most: ids that were never used count.
    """

    position: int | None
    waiting: int


class DecisionFeed:
    """Sends decisions of the log to a topic.

    Counts `decisions_sent`, and `decisions_expired`: removed from the log before they were sent.

    Args:
        log: is read, and holds the position.
        sender: sends.
        topic: to which.
        counters: where it is counted.
    """

    def __init__(self, log: LogFollowers, sender: Send, topic: str, counters: Counters) -> None:
        self._log = log
        self._sender = sender
        self._topic = topic
        self._counters = counters

    def step(self) -> int:
        """Sends the next decisions. Returns how many were worked off, 0 when none wait.

        The first call of all begins behind the newest decision: what was logged before stays in the log.

        Raises:
            StoreError: the database refuses.
            GatewayFilterError: Kafka is away; nothing is lost.
        """
        oldest, newest = self._log.bounds()
        position = self._log.position(FOLLOWER)
        if position is None:
            self._log.move(FOLLOWER, newest)
            return 0
        if position >= newest:
            return 0
        records = self._log.after(position, newest, BATCH)
        if not records:
            return 0
        letters = [(key_of(number, record), message_of(number, record)) for number, record in records if record.url]
        if letters:
            self._sender.send(self._topic, letters)
        self._log.move(FOLLOWER, records[-1][0])
        self._counters.add("decisions_sent", len(letters))
        if oldest > position + 1 > 1:
            self._counters.add("decisions_expired", oldest - position - 1)
        return len(records)


def feed_state(log: LogFollowers) -> FeedState:
    """Returns how far the log is sent.

    Raises:
        StoreError: the database refuses.
    """
    position = log.position(FOLLOWER)
    return FeedState(position, 0 if position is None else max(log.bounds()[1] - position, 0))


def key_of(number: int, record: LogRecord) -> bytes:
    """Returns the key of a decision: equal each time that it is sent, of another machine's decision another one."""
    return blake2b(json.dumps([number, *record]).encode("utf-8", "replace"), digest_size=16).hexdigest().encode()


def message_of(number: int, record: LogRecord) -> bytes:
    """Returns a decision as JSON. What the log does not keep by its settings is not in it."""
    url = _CUT.sub("", record.url)
    fields = {
        "id": key_of(number, record).decode(),
        "time": record.at,
        "client": record.client,
        "user": record.user,
        "method": record.method,
        "url": url if "://" in url else f"http://{_bracketed(url)}/",  # with log.privacy = "host" there is the host alone
        "cut": url != record.url,
        "type": record.resource_type,
        "elapsed_us": record.elapsed_us,
        "action": record.action,
        "reason": record.reason,
        "rule": record.rule,
        "source_list": record.source_list,
        "category": record.category,
    }
    return json.dumps({name: value for name, value in fields.items() if value not in {"", False}}).encode()


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host

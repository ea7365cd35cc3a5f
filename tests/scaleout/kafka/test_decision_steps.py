"""Single steps of the decision feed over a log in memory: what it skips, counts, and puts into a message."""

import json
from typing import Any, cast

from gatewayfilter.model import LogRecord
from gatewayfilter.scaleout.kafka.decision_feed import DecisionFeed, feed_state, key_of, message_of
from gatewayfilter.telemetry import Counters
from tests.case_tables import all_cases

RECORD = LogRecord(1000.5, "192.0.2.1", "GET", "http://a.test/", "document", "allow", "unknown")


class Log:
    """A log with a position."""

    def __init__(self, position: int | None, first: int, *records: LogRecord) -> None:
        self.place = position
        self.rows = list(enumerate(records, first))
        self.asked: list[tuple[int, int, int]] = []
        self.newest = first + len(records) - 1

    def bounds(self) -> tuple[int, int]:
        return (self.rows[0][0] if self.rows else 0), self.newest

    def position(self, name: str) -> int | None:
        assert name == "kafka"
        return self.place

    def move(self, name: str, number: int) -> None:
        assert name == "kafka"
        self.place = number

    def after(self, position: int, newest: int, limit: int) -> list[tuple[int, LogRecord]]:
        self.asked.append((position, newest, limit))
        return [row for row in self.rows if position < row[0] <= newest][:limit]


class Sender:
    def __init__(self) -> None:
        self.sent: list[Any] = []

    def send(self, topic: str, letters: Any) -> None:
        self.sent.append((topic, list(letters)))


def stepped(log: Log) -> tuple[int, Sender, dict[str, int]]:
    sender, counters = Sender(), Counters()
    return DecisionFeed(cast("Any", log), sender, "t", counters).step(), sender, counters.as_dict()


def test_the_first_step_of_all_begins_behind_the_newest() -> None:
    log = Log(None, 5, RECORD, RECORD)
    assert stepped(log)[0] == 0
    assert (log.place, log.asked) == (6, [])


def test_a_step_sends_what_is_behind_its_position() -> None:
    log = Log(4, 4, RECORD, RECORD, RECORD)
    done, sender, counters = stepped(log)
    letters = [(key_of(number, RECORD), message_of(number, RECORD)) for number in (5, 6)]
    assert (done, sender.sent, log.place, log.asked) == (2, [("t", letters)], 6, [(4, 6, 2000)])
    assert counters["decisions_sent"] == 2
    for position in (6, 7):
        log.place = position
        assert stepped(log)[0] == 0
        assert log.place == position
    assert len(log.asked) == 1


def test_what_is_gone_or_has_no_url_is_passed_over() -> None:
    log = Log(3, 9)
    log.newest = 9
    done, sender, _ = stepped(log)
    assert (done, sender.sent, log.place) == (0, [], 3)
    log = Log(8, 9, RECORD._replace(url=""))
    done, sender, counters = stepped(log)
    assert (done, sender.sent, log.place, counters.get("decisions_sent", 0)) == (1, [], 9, 0)


@all_cases(("position", "expired"), [(0, 0), (1, 3), (2, 2), (3, 1), (4, 0), (5, 0)])
def test_decisions_that_were_removed_before_they_were_sent_are_counted(position: int, expired: int) -> None:
    _, _, counters = stepped(Log(position, 5, RECORD, RECORD))
    assert counters.get("decisions_expired", 0) == expired


def test_how_far_the_log_is_sent() -> None:
    for position, waiting in ((None, 0), (4, 2), (6, 0), (7, 0)):
        state = feed_state(cast("Any", Log(position, 5, RECORD, RECORD)))
        assert (state.position, state.waiting) == (position, waiting)


def test_a_message_has_what_the_log_has() -> None:
    record = LogRecord(5.5, "192.0.2.1", "POST", "http://a.test/", "script", "block", "blacklist", "l", "||a", "ads", 70, "ada")
    found = json.loads(message_of(7, record))
    assert len(found["id"]) == 32
    assert found == {
        "id": key_of(7, record).decode(), "time": 5.5, "client": "192.0.2.1", "method": "POST", "url": "http://a.test/",
        "type": "script", "action": "block", "reason": "blacklist", "rule": "||a", "source_list": "l", "category": "ads",
        "elapsed_us": 70, "user": "ada",
    }  # fmt: skip
    bare = json.loads(message_of(7, RECORD))
    assert list(bare) == ["id", "time", "client", "method", "url", "type", "action", "reason"]

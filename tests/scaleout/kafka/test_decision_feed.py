"""Decisions of the log as messages: order, privacy, positions, failures."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from gatewayfilter.errors import ConfigError, GatewayFilterError
from gatewayfilter.model import LogRecord
from gatewayfilter.scaleout.kafka.decision_feed import DecisionFeed, feed_state, key_of, message_of
from gatewayfilter.scaleout.kafka.properties import read_properties
from gatewayfilter.store import Store
from gatewayfilter.telemetry import Counters
from tests.case_tables import all_cases


class FakeSender:
    def __init__(self) -> None:
        self.sent: list[tuple[bytes, bytes]] = []
        self.is_away = False

    def send(self, topic: str, letters: Sequence[tuple[bytes, bytes]]) -> None:
        assert topic == "decisions"
        self.sent += letters
        if self.is_away:
            raise GatewayFilterError("away")

    def urls(self) -> list[str]:
        return [json.loads(value)["url"] for _, value in self.sent]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    found = Store.open(f"sqlite:///{tmp_path_factory.mktemp('feed') / 'db.sqlite3'}")
    yield found
    found.close()


def record(url: str, client: str = "192.0.2.1", rule: str = "", category: str = "") -> LogRecord:
    return LogRecord(1000.5, client, "GET", url, "document", "allow", "unknown", rule=rule, category=category)


def test_decisions_are_sent_in_order_once_acknowledged(store: Store) -> None:
    sender, counters = FakeSender(), Counters()
    feed = DecisionFeed(store.log_followers, sender, "decisions", counters)
    store.log.write([record("http://old.test/")])
    assert feed_state(store.log_followers).position is None
    assert feed.step() == 0
    assert sender.sent == []
    store.log.write([record(f"http://h.test/{number}") for number in range(5)] + [record("")])
    sender.is_away = True
    with pytest.raises(GatewayFilterError):
        feed.step()
    assert feed_state(store.log_followers).waiting == 6
    first = list(sender.sent)
    sender.is_away, sender.sent = False, []
    assert feed.step() == 6  # one has no URL: it is passed over
    assert sender.sent == first  # the same keys, the same texts
    assert sender.urls() == [f"http://h.test/{number}" for number in range(5)]
    assert feed.step() == 0
    again = DecisionFeed(store.log_followers, sender, "decisions", counters)
    assert again.step() == 0
    store.log_followers.move("kafka", 0)
    sender.sent = []
    assert again.step() == 7
    assert sender.urls()[0] == "http://old.test/"
    store.log.write([record("http://gone.test/"), record("http://gone.test/")])
    store.log.purge(2000.0)
    store.log.write([record("http://new.test/")])
    assert again.step() == 1
    assert counters.as_dict() == {"decisions_sent": 12, "decisions_expired": 2}


@all_cases(
    ("url", "sent", "cut"),
    [
        ("http://a.test/x?q=1", "http://a.test/x?q=1", False),
        ("a.test", "http://a.test/", False),
        ("2001:db8::1", "http://[2001:db8::1]/", False),
        ("[2001:db8::1]", "http://[2001:db8::1]/", False),
        ("http://a.test/xxx… (9000 characters)", "http://a.test/xxx", True),
        ("http://a.test/\udcff", "http://a.test/\udcff", False),
    ],
)
def test_urls_are_those_that_a_worker_reads(url: str, sent: str, *, cut: bool) -> None:
    message = json.loads(message_of(7, record(url, client="", rule="||a.test^", category="ads")))
    assert message["url"] == sent
    assert message.get("cut", False) == cut
    assert "client" not in message
    assert message["rule"] == "||a.test^"
    assert message["id"] == key_of(7, record(url, client="", rule="||a.test^", category="ads")).decode()
    assert key_of(7, record(url)) != key_of(8, record(url))


def test_properties_name_the_line_and_never_the_value(tmp_path: Path) -> None:
    file = tmp_path / "kafka.properties"
    file.write_text("# TLS\nsecurity.protocol = SSL\n\nsasl.password=a=b\n", encoding="ascii")
    assert read_properties(file) == {"security.protocol": "SSL", "sasl.password": "a=b"}
    file.write_text("secret", encoding="ascii")
    with pytest.raises(ConfigError, match="line 1") as caught:
        read_properties(file)
    assert "secret" not in str(caught.value)
    with pytest.raises(ConfigError, match="cannot read"):
        read_properties(tmp_path / "missing")

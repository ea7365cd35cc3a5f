"""Messages to the operator by commands: a test of each channel, and no secret in any output."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.model import Client, ListAction, PolicySet, parse_matcher
from gatewayfilter.notify.message import compose
from gatewayfilter.sources import Definition, SourceState, Subscription
from gatewayfilter.store import Store
from gatewayfilter.wiring.notification import report_devices, report_sources
from tests.notify.notify_servers import HttpReceiver

type Cli = Callable[..., Any]


@pytest.fixture
def receiver() -> Iterator[HttpReceiver]:
    found = HttpReceiver()
    yield found
    found.close()


def test_without_a_channel(cli: Cli) -> None:
    assert cli("notify", "test").code == 1
    assert "No channel" in cli("notify", "status").out


def test_each_channel_is_tried(cli: Cli, receiver: HttpReceiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAYFILTER_NOTIFY__WEBHOOK_URL", f"{receiver.url}/hidden-path")
    monkeypatch.setenv("GATEWAYFILTER_NOTIFY__WEBHOOK_KEY", "hidden-key")
    monkeypatch.setenv("GATEWAYFILTER_NOTIFY__COMMAND", "/no/such/program")
    done = cli("notify", "test")
    assert done.code == 1
    assert "webhook: sent" in done.out
    assert "command: /no/such/program cannot be run" in done.out
    assert len(receiver.received) == 1
    receiver.statuses = [500]
    failed = cli("notify", "test", "--json")
    assert failed.json["webhook"] == {"sent": False, "error": "127.0.0.1 did not take the message: HTTP 500"}
    shown = cli("config", "show", "notify")
    assert "(set)" in shown.out
    for output in (
        done,
        failed,
        shown,
        cli("config", "show", "--json"),
        cli("notify", "status"),
        cli("notify", "status", "--json"),
    ):
        assert "hidden" not in output.out + output.err


@pytest.mark.parametrize("value", ["ftp://x/", "hidden path"])
def test_a_secret_is_not_in_errors(value: str, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAYFILTER_NOTIFY__NTFY_URL", value)
    refused = cli("config", "check")
    assert refused.code == 2
    assert value not in refused.err


def test_lists_that_fail_for_days_are_told_of_once_a_day(tmp_path: Path) -> None:
    store = Store.open(f"sqlite:///{tmp_path / 'db.sqlite3'}")
    day = 86_400.0

    def subscription(name: str, failures: int, since: float, *, enabled: bool = True) -> Subscription:
        definition = Definition(name, f"https://{name}.example/", None, "ads", ListAction.BLOCK, 0.0, enabled)
        return Subscription(definition, tmp_path, SourceState(failures=failures, failing_since=since, error="404"))

    found = [
        subscription("dead", 9, 100 * day),
        subscription("new", 9, 102.5 * day),
        subscription("good", 0, 100 * day),
        subscription("off", 9, 100 * day, enabled=False),
    ]
    assert report_sources(found, store.notifications, 103 * day) == 1
    assert report_sources(found, store.notifications, 103.5 * day) == 0
    assert report_sources(found, store.notifications, 104 * day) == 1
    facts = store.notifications.after(0, 10)[0].facts
    assert facts == {"source": "dead", "days": 3, "error": "404"}


def test_a_new_device_is_told_of_once(tmp_path: Path) -> None:
    store = Store.open(f"sqlite:///{tmp_path / 'db.sqlite3'}")
    matchers = (parse_matcher("aa:bb:cc:dd:ee:01"), parse_matcher("10.0.0.2"))
    policies = PolicySet.of([Client("kim", matchers)])
    neighbours = {
        "10.0.0.1": "aa:bb:cc:dd:ee:01",
        "10.0.0.2": "aa:bb:cc:dd:ee:02",
        "10.0.0.3": "aa:bb:cc:dd:ee:03",
        "fd00::3": "aa:bb:cc:dd:ee:03",
    }
    assert report_devices(neighbours, policies, store.notifications, 1.0) == 1
    assert report_devices(neighbours, policies, store.notifications, 2.0) == 0
    (found,) = store.notifications.after(0, 10)
    assert "client add NAME --address aa:bb:cc:dd:ee:03" in compose([found]).text
    flood = {f"10.1.{number >> 8}.{number & 255}": f"02:00:00:00:{number >> 8:02x}:{number & 255:02x}" for number in range(5000)}
    assert report_devices(flood, policies, store.notifications, 3.0) == 200

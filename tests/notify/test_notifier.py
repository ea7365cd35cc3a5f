"""Sending of what waits: digests, retries, restarts, and channels that do not disturb each other."""

import time
from pathlib import Path

import pytest

from gatewayfilter.errors import NotifyError
from gatewayfilter.interfaces import Notification
from gatewayfilter.notify.message import Message, compose
from gatewayfilter.notify.notifier import BACKLOG_S, TOO_OLD_S, ChannelSender, Notifier, open_channels
from gatewayfilter.settings import NotifySettings
from gatewayfilter.store import Store
from gatewayfilter.telemetry import Counters
from tests.notify.notify_servers import SmtpReceiver


class FakeChannel:
    """Keeps what is sent; fails while `failing`."""

    def __init__(self, name: str = "webhook") -> None:
        self.name = name
        self.sent: list[Message] = []
        self.failing = False
        self.tries = 0

    def send(self, message: Message) -> None:
        self.tries += 1
        if self.failing:
            raise NotifyError("no")
        self.sent.append(message)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(f"sqlite:///{tmp_path / 'db.sqlite3'}")


class Bench:
    def __init__(self, store: Store, channel: FakeChannel, **settings: object) -> None:
        self.store, self.channel, self.now = store, channel, 1000.0
        self.counters = Counters()
        self.settings = NotifySettings(**settings)  # type: ignore[arg-type]
        self.restart()

    def restart(self) -> None:
        self.sender = ChannelSender(self.channel, self.store.notifications, self.settings, self.counters, lambda: self.now)
        self.sender.run_once()

    def add(self, *numbers: int, event: str = "request") -> None:
        for number in numbers:
            assert self.store.notifications.add(
                event, f"{event} {number}", self.now, {"request": number, "url": "http://a.example/"}
            )

    def run(self, seconds: int) -> None:
        for _ in range(seconds):
            self.sender.run_once()
            self.now += 1.0


def test_the_first_is_sent_at_once_and_a_flood_is_one_message_a_minute(store: Store) -> None:
    bench = Bench(store, FakeChannel())
    bench.add(1)
    bench.run(1)
    assert [len(message.events) for message in bench.channel.sent] == [1]
    for number in range(2, 1002):
        bench.add(number)
    bench.run(200)
    assert [len(message.events) for message in bench.channel.sent] == [1, 500, 500]
    bench.run(200)
    assert len(bench.channel.sent) == 3
    assert (bench.counters["notifications_sent"], bench.counters["notifications_dropped"]) == (3, 0)


def test_the_pause_begins_with_the_message_and_ends_when_it_is_over(store: Store) -> None:
    bench = Bench(store, FakeChannel(), digest_s=60)
    bench.add(1)
    assert bench.sender.run_once()
    bench.add(2)
    for now, sent in ((1000.0, False), (1000.5, False), (1059.5, False), (1060.0, True)):
        bench.now = now
        assert bench.sender.run_once() is sent


def test_a_channel_begins_with_what_happens_after_it_was_set_up(store: Store) -> None:
    long_ago, now = 1000.0 - BACKLOG_S - 1, 1000.0
    store.notifications.add("request", "old", long_ago, {"request": 1})
    bench = Bench(store, FakeChannel())
    bench.run(5)
    assert bench.channel.sent == []
    assert not store.notifications.add("request", "old", now, {"request": 1})


def test_what_happened_while_a_new_installation_started_is_sent(store: Store) -> None:
    store.notifications.add("request", "early", 995.0, {"request": 1, "url": "http://a.example/"})
    bench = Bench(store, FakeChannel())
    bench.run(5)
    assert [message.events for message in bench.channel.sent] != []


def test_failures_are_tried_again_ever_later(store: Store) -> None:
    bench = Bench(store, FakeChannel())
    bench.channel.failing = True
    bench.add(1)
    bench.run(3600)
    assert 9 <= bench.channel.tries <= 11
    assert bench.counters["notifications_failed"] == bench.channel.tries
    (state,) = store.notifications.channels([bench.channel.name]).values()
    assert state.failures == bench.channel.tries
    assert state.error
    assert bench.now - 3602 <= state.failing_since <= bench.now - 3590
    bench.channel.failing = False
    bench.restart()
    bench.run(3600)
    (state,) = store.notifications.channels([bench.channel.name]).values()
    assert (state.failures, state.failing_since, state.error) == (0, 0.0, "")
    assert [message.number for message in bench.channel.sent] == [1]


def test_a_restart_sends_nothing_twice(store: Store) -> None:
    bench = Bench(store, FakeChannel())
    bench.add(1)
    bench.run(2)
    bench.restart()
    bench.run(120)
    bench.add(2)
    bench.run(1)
    assert [message.number for message in bench.channel.sent] == [1, 2]


def test_what_is_not_wanted_or_too_old_is_left_out(store: Store) -> None:
    bench = Bench(store, FakeChannel(), events=("source",))
    bench.add(1)
    bench.add(2, event="source")
    bench.now += TOO_OLD_S
    bench.run(2)
    assert bench.channel.sent == []
    assert bench.counters["notifications_dropped"] == 1
    bench.add(3, event="source")
    bench.run(2)
    assert len(bench.channel.sent) == 1


def test_a_clock_that_is_set_back_stops_nothing(store: Store) -> None:
    bench = Bench(store, FakeChannel())
    bench.add(1)
    bench.run(1)
    bench.now -= 1_000_000
    bench.add(2)
    bench.run(1)
    assert len(bench.channel.sent) == 2


def test_a_channel_that_hangs_stops_no_other(store: Store) -> None:
    class Hanging(FakeChannel):
        def send(self, message: Message) -> None:
            self.tries += 1
            time.sleep(3)

    good, bad = FakeChannel("ntfy"), Hanging("mail")
    settings = NotifySettings(digest_s=1)
    senders = [ChannelSender(channel, store.notifications, settings, Counters()) for channel in (bad, good)]
    for sender in senders:
        sender.run_once()
    store.notifications.add("request", "1", time.time(), {"request": 1})
    running = Notifier(senders)
    running.start()
    deadline = time.monotonic() + 20
    while not good.sent and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(good.sent) == 1
    running.stop(0.1)


def test_channels_of_settings() -> None:
    assert open_channels(NotifySettings()) == []
    settings = NotifySettings.model_validate(
        {
            "webhook_url": "https://hooks.example/secret",
            "ntfy_url": "https://ntfy.example/topic",
            "smtp_host": "mail.example",
            "smtp_password": "hidden",
            "mail_to": ["me@example.com"],
            "command": ["notify-send"],
        }
    )
    assert [channel.name for channel in open_channels(settings)] == ["webhook", "ntfy", "mail", "command"]
    assert "hidden" not in repr(settings)
    assert "secret" not in repr(settings)


@pytest.mark.parametrize("given", [{"smtp_host": "mail.example"}, {"mail_to": ["me@example.com"]}])
def test_mail_needs_a_server_and_a_receiver(given: dict[str, object]) -> None:
    assert open_channels(NotifySettings.model_validate(given)) == []


@pytest.mark.parametrize(("mail_from", "sender"), [("", "me@example.com"), ("filter@example.com", "filter@example.com")])
def test_mails_come_from_their_first_receiver_unless_a_sender_is_set(mail_from: str, sender: str) -> None:
    server = SmtpReceiver()
    settings = {"smtp_host": "127.0.0.1", "smtp_port": server.port, "smtp_security": "none", "mail_from": mail_from}
    (channel,) = open_channels(NotifySettings.model_validate(settings | {"mail_to": ["me@example.com", "you@example.com"]}))
    channel.send(compose([Notification(1, "test", 1.0, {})]))
    (mail,) = server.mails
    assert mail.sender.lower().startswith(f"mail from:<{sender}>")
    server.close()


@pytest.mark.parametrize(
    "given",
    [
        {"webhook_url": "file:///etc/passwd"},
        {"ntfy_url": "ntfy.sh/topic"},
        {"base_url": "http://a b/"},
        {"mail_to": ["me@example.com\r\nBcc: x@y.example"]},
        {"mail_to": ["a@b.example,c@d.example"]},
        {"mail_from": "nobody"},
        {"timeout_s": 0},
    ],
)
def test_settings_that_are_refused(given: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"must be|greater"):
        NotifySettings.model_validate(given)

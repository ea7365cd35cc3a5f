"""The notifier: one thread for each channel, which sends what waits in the store.

How far a channel is stands in the store: after a restart nothing is sent twice, but for a message during which the process was
killed; that one has the same number again. A channel that hangs or fails stops no other one.
"""

import logging
import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Final, Protocol

from gatewayfilter.errors import NotifyError, StoreError
from gatewayfilter.interfaces import ChannelState, Notification, NotificationStore
from gatewayfilter.notify.command_channel import CommandChannel
from gatewayfilter.notify.http_channels import NtfyChannel, WebhookChannel
from gatewayfilter.notify.mail_channel import MailChannel
from gatewayfilter.notify.message import Message, compose
from gatewayfilter.settings import NotifySettings
from gatewayfilter.telemetry import Counters

_log = logging.getLogger(__name__)

EVERY_S: Final = 1.0
FIRST_RETRY_S: Final = 5.0
LONGEST_RETRY_S: Final = 3600.0
TOO_OLD_S: Final = 86_400.0
"""A notification that could not be sent for so long is dropped."""
BACKLOG_S: Final = 600.0
"""What a new channel still sends: a page may be asked for before the notifier of a new installation has started."""
_MOST_AT_ONCE: Final = 500
_LONGEST_ERROR: Final = 300


class Channel(Protocol):
    """Sends messages."""

    @property
    def name(self) -> str:
        """Unique, as the store has it."""
        ...

    def send(self, message: Message) -> None:
        """Sends a message, within its time limit.

        Raises:
            NotifyError: it was not accepted.
        """
        ...


def open_channels(settings: NotifySettings) -> list[Channel]:
    """Returns the channels whose address is set."""
    channels: list[Channel] = []
    limit_s = settings.timeout_s
    if url := settings.webhook_url.get_secret_value():
        channels.append(WebhookChannel(url, settings.webhook_key.get_secret_value(), limit_s))
    if url := settings.ntfy_url.get_secret_value():
        channels.append(NtfyChannel(url, settings.ntfy_token.get_secret_value(), limit_s))
    if settings.smtp_host and settings.mail_to:
        login = (settings.smtp_user, settings.smtp_password.get_secret_value())
        sender = settings.mail_from or settings.mail_to[0]
        server = (settings.smtp_host, settings.smtp_port)
        channels.append(MailChannel(server, settings.smtp_security, login, sender, settings.mail_to, limit_s))
    if settings.command:
        channels.append(CommandChannel(settings.command, limit_s))
    return channels


class ChannelSender:
    """Sends what waits for one channel.

    Args:
        channel: the channel.
        store: the notifications, and how far the channel is.
        settings: `events`, `base_url` and `digest_s` count here.
        counters: `notifications_sent`, `notifications_failed`, `notifications_dropped`.
        clock: Unix seconds.
    """

    def __init__(
        self,
        channel: Channel,
        store: NotificationStore,
        settings: NotifySettings,
        counters: Counters,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._channel = channel
        self._store = store
        self._events: Collection[str] = {event.value for event in settings.events}
        self._base_url = settings.base_url
        self._digest_s = settings.digest_s
        self._counters = counters
        self._clock = clock
        self._state: ChannelState | None = None

    def run_once(self) -> bool:
        """Sends one message if one is due. Returns whether one was sent.

        Raises:
            StoreError: the database refuses.
        """
        if self._state is None:
            self._state = self._store.channel(self._channel.name, self._clock() - BACKLOG_S)
        state, now = self._state, self._clock()
        if now < state.retry_at <= now + LONGEST_RETRY_S or 0 <= now - state.sent_at < self._digest_s:
            return False
        waiting = self._store.after(state.last_id, _MOST_AT_ONCE)
        if not waiting:
            return False
        wanted = [found for found in waiting if found.event in self._events]
        fresh = [found for found in wanted if now - found.at < TOO_OLD_S]
        self._counters.add("notifications_dropped", len(wanted) - len(fresh))
        if not fresh:
            self._put(replace(state, last_id=waiting[-1].number))
            return False
        return self._send(state, waiting, fresh, now)

    def _send(self, state: ChannelState, waiting: Sequence[Notification], fresh: Sequence[Notification], now: float) -> bool:
        try:
            self._channel.send(compose(fresh, self._base_url))
        except NotifyError as error:
            self._counters.add("notifications_failed")
            wait_s = min(FIRST_RETRY_S * 2 ** min(state.failures, 20), LONGEST_RETRY_S)
            if not state.failures:
                _log.warning("%s: %s; trying again", self._channel.name, error)
            since = state.failing_since if state.failures else now
            failed = replace(state, failures=state.failures + 1, retry_at=now + wait_s, failing_since=since)
            self._put(replace(failed, error=str(error)[:_LONGEST_ERROR]))
            return False
        self._counters.add("notifications_sent")
        if state.failures:
            _log.info("%s: messages are sent again", self._channel.name)
        self._put(ChannelState(waiting[-1].number, now))
        return True

    def _put(self, state: ChannelState) -> None:
        self._state = state  # first: if the database refuses, this process sends nothing twice
        self._store.put_channel(self._channel.name, state)


class Notifier:
    """Runs a thread for each sender.

    Args:
        senders: of the channels.
    """

    def __init__(self, senders: Sequence[ChannelSender]) -> None:
        self._senders = senders
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(sender,), name=f"notifier-{number}", daemon=True)
            for number, sender in enumerate(senders)
        ]

    def start(self) -> None:
        """Starts the threads."""
        for thread in self._threads:
            thread.start()

    def stop(self, timeout_s: float = 3.0) -> None:
        """Ends the threads; a message that is being sent has so long to arrive."""
        self._stop.set()
        deadline = time.monotonic() + timeout_s
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _run(self, sender: ChannelSender) -> None:
        while not self._stop.wait(EVERY_S):
            try:
                sender.run_once()
            except StoreError as error:
                _log.warning("notifications wait: %s", error)
                self._stop.wait(FIRST_RETRY_S)
            except Exception:  # noqa: BLE001  the thread must go on: there is no other one
                _log.exception("a notification failed; trying again")
                self._stop.wait(FIRST_RETRY_S)

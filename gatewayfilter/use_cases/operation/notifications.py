"""The channels of messages to the operator: whether messages arrive, and a test message."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewayfilter.errors import NotifyError
from gatewayfilter.interfaces import Notification
from gatewayfilter.notify.message import compose
from gatewayfilter.notify.notifier import open_channels

if TYPE_CHECKING:
    from gatewayfilter.config import Settings
    from gatewayfilter.interfaces import ChannelState
    from gatewayfilter.store import Store


def channel_states(settings: Settings, store: Store) -> dict[str, ChannelState | None]:
    """Returns how far each channel that is set up is, `None` for one that was not used yet."""
    names = [channel.name for channel in open_channels(settings.notify)]
    found = store.notifications.channels(names)
    return {name: found.get(name) for name in names}


def send_test(settings: Settings, now: float) -> dict[str, str]:
    """Sends a test message by each channel that is set up. Returns why it failed by the channel's name, `""` where it was sent.

    Args:
        settings: with the channels.
        now: Unix seconds.
    """
    results: dict[str, str] = {}
    for channel in open_channels(settings.notify):
        try:
            channel.send(compose([Notification(int(now), "test", now, {})]))
        except NotifyError as error:
            results[channel.name] = str(error)
        else:
            results[channel.name] = ""
    return results

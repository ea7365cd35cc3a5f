"""Wiring of notifications: the notifier of a running filter, and the faults that it tells the operator of."""

from collections.abc import Mapping, Sequence
from typing import Final

from gatewayfilter.config import Settings
from gatewayfilter.interfaces import NotificationStore
from gatewayfilter.model import MatcherKind, PolicySet
from gatewayfilter.notify.notifier import ChannelSender, Notifier, open_channels
from gatewayfilter.sources import Subscription
from gatewayfilter.store import Store
from gatewayfilter.telemetry import Counters

FAILING_DAYS: Final = 3
"""After so many days without an update the operator is told, and once a day from then on."""
_DAY_S: Final = 86_400.0
_MOST_DEVICES: Final = 200
"""Neighbours that are looked at: a neighbour may claim any number of addresses."""


def notifier(settings: Settings, store: Store, counters: Counters) -> Notifier:
    """Returns the notifier, with a sender for each channel that is set up; it is not started."""
    channels = open_channels(settings.notify)
    return Notifier([ChannelSender(channel, store.notifications, settings.notify, counters) for channel in channels])


def report_sources(subscriptions: Sequence[Subscription], store: NotificationStore, now: float) -> int:
    """Adds a notification for each list in use that could not be updated for days, one a day. Returns their number."""
    count = 0
    for found in subscriptions:
        state = found.state
        days = int((now - state.failing_since) / _DAY_S)
        if found.definition.enabled and state.failures and state.failing_since and days >= FAILING_DAYS:
            what = f"{found.definition.name} {int(now / _DAY_S)}"
            count += store.add("source", what, now, {"source": found.definition.name, "days": days, "error": state.error})
    return count


def report_devices(neighbours: Mapping[str, str], policies: PolicySet, store: NotificationStore, now: float) -> int:
    """Adds a notification for each device on this machine's links that is no client. Returns the number of new ones.

    Args:
        neighbours: address → MAC.
        policies: with the clients; one that is recognized by its MAC or its address is known.
        store: takes the notifications; a device is notified of once.
        now: Unix seconds.
    """
    known = {
        matcher.value
        for client in policies.clients.values()
        for matcher in client.matchers
        if matcher.kind in {MatcherKind.MAC, MatcherKind.ADDRESS}
    }
    count = 0
    for address, mac in list(neighbours.items())[:_MOST_DEVICES]:
        if mac not in known and address not in known:
            count += store.add("device", mac, now, {"address": address, "mac": mac})
    return count

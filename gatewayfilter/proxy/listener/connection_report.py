"""The report on connections of a client to a host, for `check`: the listener's own decision, with its reasons."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from gatewayfilter.config import RawTcpRule, Settings
from gatewayfilter.interfaces import DecideHost
from gatewayfilter.model import HostAction, HostVerdict, Reason
from gatewayfilter.proxy.listener.host_policy import HostPolicy, is_name
from gatewayfilter.proxy.listener.pinned_apps import PinnedApp, PinnedAppsFile, open_pinned_apps
from gatewayfilter.settings import DenyRule
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import Url

_WEB_PORTS = frozenset({"", "80", "443"})


class RawTunnels(StrEnum):
    """The treatment of a tunnel that carries neither HTTP nor TLS."""

    REFUSED = "refused"
    UNREAD = "unread"


@dataclass(frozen=True, slots=True)
class ConnectionReport:
    """What holds for HTTPS connections.

    Attributes:
        decision: for this client.
        shows_page: of a blocked host: a device that takes the filter's certificate sees the block page.
        learned: names that pass unread for a device: those of this client, of all clients where none is given.
        counts: whether `learned` has an effect now: it is allowed, and no block names the host or a page of it.
        raw: the treatment of tunnels that carry neither HTTP nor TLS.
    """

    decision: HostVerdict
    shows_page: bool
    learned: tuple[PinnedApp, ...]
    counts: bool
    raw: RawTunnels

    @property
    def unread(self) -> bool:
        """Whether the connection passes unread, so that no decision on the URL applies."""
        return self.decision.action is HostAction.SPLICE

    @property
    def is_learned(self) -> bool:
        """Whether that is so because of what was learned about the device."""
        return self.decision.verdict.reason is Reason.PINNED_APP


def report_connection(
    settings: Settings, engine: DecideHost, url: Url, client: str, clock: Callable[[], float]
) -> ConnectionReport:
    """Returns what holds for connections of a client to the host of a URL. Reads what was learned from the disk.

    Args:
        settings: `tls`, `proxy` and the state folder.
        engine: decides hosts, by the same clock.
        url: the requested URL.
        client: the client's address, `""` for any.
        clock: Unix seconds.
    """
    counters = Counters()
    pinned_apps = open_pinned_apps(settings, counters, clock)
    decision = HostPolicy(engine, settings.tls, None, counters, pinned_apps).judge(client, url.host)
    now = clock()
    learned = tuple(
        entry
        for entry in PinnedAppsFile.in_folder(settings.data_dir).read()
        if entry.host == url.host and entry.client == (client or entry.client) and entry.learned_at <= now < entry.expires_at
    )
    looked_at = decision.action is HostAction.INTERCEPT and not decision.named and is_name(url.host)
    counts = pinned_apps is not None and (looked_at or decision.verdict.reason is Reason.PINNED_APP)
    return ConnectionReport(
        decision,
        settings.tls.deny is DenyRule.PAGE and decision.shows_page,
        learned,
        counts,
        _raw_tunnels(settings, url, engine, client),
    )


def _raw_tunnels(settings: Settings, url: Url, engine: DecideHost, client: str) -> RawTunnels:
    found = engine.decide_host(url.host, client).action
    rule = settings.proxy.raw_tcp
    if found is HostAction.DENY or rule is RawTcpRule.OFF or (rule is RawTcpRule.KNOWN and found is not HostAction.SPLICE):
        return RawTunnels.REFUSED
    return RawTunnels.REFUSED if url.port in _WEB_PORTS else RawTunnels.UNREAD

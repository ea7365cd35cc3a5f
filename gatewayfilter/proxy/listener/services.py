"""What the listener and the addons of connections share in one worker."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from gatewayfilter.config import Settings
from gatewayfilter.errors import StartupError
from gatewayfilter.interfaces import DecideHost
from gatewayfilter.proxy.auth.user_file import Users
from gatewayfilter.proxy.listener.host_policy import HostPolicy
from gatewayfilter.proxy.listener.listener import Decision, InterceptAll
from gatewayfilter.proxy.listener.pinned_apps import PinnedApps, PinnedAppsFile
from gatewayfilter.proxy.sync.decision_recorder import DecisionRecorder
from gatewayfilter.settings import UnknownRule
from gatewayfilter.telemetry import Counters


@dataclass(frozen=True, slots=True)
class ConnectionServices:
    """How connections are decided.

    Attributes:
        decision: says what becomes of a host; by default everything is looked at.
        tls: the same, when it is the real one.
        pinned_apps: what was learned about devices, `None` when nothing is.
        users: who may use the proxy, `None` for everybody.
    """

    counters: Counters = field(default_factory=Counters)
    decision: Decision = field(default_factory=InterceptAll)
    tls: HostPolicy | None = None
    pinned_apps: PinnedApps | None = None
    users: Users | None = None
    recorder: DecisionRecorder | None = None

    def refresh(self) -> None:
        """Writes what was learned, and reads what changed on disk. Does I/O: call it from a thread, about once a second."""
        if self.pinned_apps is not None:
            self.pinned_apps.save()
        if self.users is not None:
            self.users.refresh()


def assemble_services(
    settings: Settings, engine: DecideHost, recorder: DecisionRecorder | None, counters: Counters
) -> ConnectionServices:
    """Joins what decides connections.

    Nothing is learned where unknown URLs are not simply allowed: an unread connection would go past that rule.

    Raises:
        StartupError: the users of the proxy cannot be read, or cannot be asked for a password.
    """
    users = None
    if settings.proxy.auth_file is not None:
        if settings.proxy.mode == "transparent":
            raise StartupError("proxy.auth_file cannot be used in transparent mode: clients do not know that there is a proxy")
        users = Users(settings.proxy.auth_file)
    pinned_apps = learned_pins(settings, counters)
    tls = HostPolicy(engine, settings.tls, recorder, counters, pinned_apps)
    return ConnectionServices(counters, tls, tls, pinned_apps, users, recorder)


def learned_pins(settings: Settings, counters: Counters, clock: Callable[[], float] = time.time) -> PinnedApps | None:
    """Returns what was learned about devices, `None` where nothing may be."""
    if not settings.tls.pinned_apps or settings.proxy.unknown is not UnknownRule.ALLOW:
        return None
    found = PinnedApps(
        PinnedAppsFile.in_folder(settings.data_dir),
        after=settings.tls.pinned_apps_after,
        days=settings.tls.pinned_apps_days,
        names=settings.tls.pinned_apps_per_client,
        counters=counters,
        clock=clock,
    )
    found.refresh()
    return found

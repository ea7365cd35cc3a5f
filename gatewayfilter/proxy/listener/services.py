"""What the listener and the addons of connections share in one worker."""

from dataclasses import dataclass, field

from gatewayfilter.interfaces import DecideTraffic
from gatewayfilter.proxy.auth.user_file import Users
from gatewayfilter.proxy.listener.connection_policy import ConnectionPolicy, InterceptAll
from gatewayfilter.proxy.listener.pinned_apps import PinnedApps
from gatewayfilter.proxy.sync.decision_recorder import DecisionRecorder
from gatewayfilter.proxy.sync.usage_counter import UsageCounter, no_usage
from gatewayfilter.telemetry import Counters


@dataclass(frozen=True, slots=True)
class ConnectionServices:
    """How connections are decided.

    Attributes:
        counters: the worker's.
        policy: decides whether a connection is decrypted, spliced or refused; by default each is decrypted.
        pinned_apps: what was learned about devices, `None` when nothing is.
        users: the users of the proxy; `None` requires no log-in.
        recorder: takes decisions for the log, `None` without a log.
        logged_in: id of a client's connection → its proxy user.
        usage: counts the use of quotas.
        engine: decides what is running again when policies change, `None` for never.
    """

    counters: Counters = field(default_factory=Counters)
    policy: ConnectionPolicy = field(default_factory=InterceptAll)
    pinned_apps: PinnedApps | None = None
    users: Users | None = None
    recorder: DecisionRecorder | None = None
    engine: DecideTraffic | None = None
    logged_in: dict[str, str] = field(default_factory=dict)
    usage: UsageCounter = field(default_factory=no_usage)

    def refresh(self) -> None:
        """Writes what was learned, and reads what changed on disk. Does I/O: call it from a thread, about once a second."""
        if self.pinned_apps is not None:
            self.pinned_apps.save()
        if self.users is not None:
            self.users.refresh()

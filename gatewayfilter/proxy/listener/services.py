"""What the listener and the addons of connections share in one worker."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from gatewayfilter.config import Settings
from gatewayfilter.errors import StartupError
from gatewayfilter.interfaces import DecideHost
from gatewayfilter.proxy.auth.user_file import Users
from gatewayfilter.proxy.listener.host_policy import TlsDecision
from gatewayfilter.proxy.listener.listener import Decision, LookAtAll
from gatewayfilter.proxy.listener.pinned_apps import FILE_NAME, PassThrough, PassThroughFile
from gatewayfilter.proxy.sync.decision_recorder import DecisionRecorder
from gatewayfilter.settings import UnknownRule
from gatewayfilter.telemetry import Counters


@dataclass(frozen=True, slots=True)
class Wire:
    """How connections are decided.

    Attributes:
        decision: says what becomes of a host; by default everything is looked at.
        tls: the same, when it is the real one.
        pass_through: what was learned about devices, `None` when nothing is.
        users: who may use the proxy, `None` for everybody.
    """

    counters: Counters = field(default_factory=Counters)
    decision: Decision = field(default_factory=LookAtAll)
    tls: TlsDecision | None = None
    pass_through: PassThrough | None = None
    users: Users | None = None
    recorder: DecisionRecorder | None = None

    def refresh(self) -> None:
        """Writes what was learned, and reads what changed on disk. Does I/O: call it from a thread, about once a second."""
        if self.pass_through is not None:
            self.pass_through.save()
        if self.users is not None:
            self.users.refresh()


def assemble_wire(settings: Settings, engine: DecideHost, recorder: DecisionRecorder | None, counters: Counters) -> Wire:
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
    pass_through = learned_pass_through(settings, counters)
    tls = TlsDecision(engine, settings.tls, recorder, counters, pass_through)
    return Wire(counters, tls, tls, pass_through, users, recorder)


def learned_pass_through(settings: Settings, counters: Counters, clock: Callable[[], float] = time.time) -> PassThrough | None:
    """Returns what was learned about devices, `None` where nothing may be."""
    if not settings.tls.pass_through or settings.proxy.unknown is not UnknownRule.ALLOW:
        return None
    found = PassThrough(
        PassThroughFile(settings.data_dir / FILE_NAME),
        after=settings.tls.pass_through_after,
        days=settings.tls.pass_through_days,
        names=settings.tls.pass_through_names,
        counters=counters,
        clock=clock,
    )
    found.refresh()
    return found

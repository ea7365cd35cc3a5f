"""The policy of connections: the interface that the listener uses, and the policy that decrypts every connection.

`HostPolicy` (host_policy.py) is the one that decides.
"""

import time
from dataclasses import dataclass
from typing import Final, Protocol

from gatewayfilter.model import Action, HostAction, HostVerdict, Reason, Verdict

INTERCEPT: Final = HostVerdict(HostAction.INTERCEPT, Verdict(Action.ALLOW, Reason.UNKNOWN, unknown=True))
"""The connection goes to mitmproxy, and its requests are decided one by one."""


class ConnectionPolicy(Protocol):
    """Decides connections by the names that they carry, and logs those of which no request is logged."""

    def judge(self, client: str, target: str, name: str = "", user: str = "") -> HostVerdict:
        """Returns what to do with a connection.

        Args:
            client: the client's address.
            target: the host that the connection leads to, as the client gave it.
            name: the server name inside, when it is another one.
            user: name of the proxy user, `""` for none.
        """
        ...

    def may_change(self) -> bool:
        """Returns whether another verdict may come to hold for a connection while it is open."""
        ...

    def count_use(self, client: str, host: str, user: str) -> None:
        """Counts bytes that passed a connection unread as use of quotas."""
        ...

    def may_learn(self, client: str, host: str) -> bool:
        """Returns whether a host may come to pass through unread for a client."""
        ...

    def shows_page(self, client: str, host: str) -> bool:
        """Returns whether a blocked host is answered with a page."""
        ...

    def record(self, client: str, host: str, port: int, verdict: Verdict, started_ns: int, user: str = "") -> None:
        """Counts and logs a connection of which no request is logged.

        Args:
            client: the client's address.
            host: canonical.
            port: where it leads.
            verdict: what was decided, and why.
            started_ns: `time.perf_counter_ns()` when the decision began.
            user: name of the proxy user, `""` for none.
        """
        ...


class InterceptAll:
    """Leaves every connection to mitmproxy. Implements `ConnectionPolicy`."""

    def judge(self, client: str, target: str, name: str = "", user: str = "") -> HostVerdict:  # noqa: ARG002  the protocol
        """Returns `INTERCEPT`."""
        return INTERCEPT

    def may_change(self) -> bool:
        """Returns False."""
        return False

    def count_use(self, client: str, host: str, user: str) -> None:
        """Does nothing: no connection passes unread."""

    def may_learn(self, client: str, host: str) -> bool:  # noqa: ARG002  the protocol
        """Returns False."""
        return False

    def shows_page(self, client: str, host: str) -> bool:  # noqa: ARG002  the protocol
        """Returns True."""
        return True

    def record(self, client: str, host: str, port: int, verdict: Verdict, started_ns: int, user: str = "") -> None:
        """Does nothing: no connection passes unread or is refused."""


@dataclass(frozen=True, slots=True)
class StillSpliced:
    """Whether a relayed connection may still pass unread, and to where it leads. Called again while it is open."""

    policy: ConnectionPolicy
    address: str
    host: str
    port: int
    name: str
    user: str
    always: bool
    connect_to: str = ""

    def __call__(self) -> bool:
        """Returns whether the policy still relays the connection; one that is blocked by now is recorded."""
        if not self.always and not self.policy.may_change():
            return True
        found = self.policy.judge(self.address, self.host, self.name, self.user)
        if found.action is HostAction.DENY:
            self.policy.record(self.address, self.host, self.port, found.verdict, time.perf_counter_ns(), self.user)
        return found.action is HostAction.SPLICE and found.connect_to == self.connect_to

    def count_use(self) -> None:
        """Counts the connection as use of quotas."""
        self.policy.count_use(self.address, self.name or self.host, self.user)

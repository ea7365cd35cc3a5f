"""The policy of connections by host: the engine's decision on its names, what was learned about its device, the log record."""

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Final

from gatewayfilter.config import DenyRule, TlsSettings
from gatewayfilter.errors import UrlError
from gatewayfilter.interfaces import DecideHost
from gatewayfilter.model import Action, HostAction, HostVerdict, Reason, Request, ResourceType, Verdict
from gatewayfilter.proxy.listener.connection_policy import INTERCEPT
from gatewayfilter.proxy.listener.pinned_apps import PinnedApps
from gatewayfilter.proxy.sync.decision_recorder import DecisionRecorder
from gatewayfilter.proxy.sync.usage_counter import UsageCounter
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import canonical_host, is_ip_literal, parse_url

_log = logging.getLogger(__name__)

_LEARNED: Final = HostVerdict(HostAction.SPLICE, Verdict(Action.ALLOW, Reason.PINNED_APP))
_COMPLAIN_EVERY_S: Final = 10.0


class HostPolicy:
    """Decides connections by the names that they carry.

    Args:
        engine: decides hosts.
        settings: what may pass through, and how a blocked host is refused.
        recorder: takes each decision for the log; `None` when nothing is logged.
        counters: `requests`, `blocked`, `spliced`, `denied`, `hook_errors`.
        pinned_apps: what was learned about devices, `None` when nothing may be learned.
        clock: monotonic seconds.
        usage: counts the use of quotas, `None` for nothing.
    """

    def __init__(
        self,
        engine: DecideHost,
        settings: TlsSettings,
        recorder: DecisionRecorder | None,
        counters: Counters,
        pinned_apps: PinnedApps | None = None,
        clock: Callable[[], float] = time.monotonic,
        usage: UsageCounter | None = None,
    ) -> None:
        self._engine = engine
        self._settings = settings
        self._recorder = recorder
        self._counters = counters
        self._pinned_apps = pinned_apps
        self._clock = clock
        self._usage = usage
        self._complained_at = -_COMPLAIN_EVERY_S

    def judge(self, client: str, target: str, name: str = "", user: str = "") -> HostVerdict:
        """Returns what to do with a connection. When that fails it is intercepted: `proxy.on_error` decides there.

        Args:
            client: the client's address.
            target: the host that the connection leads to, as the client gave it: its tunnel's, or the server name.
            name: the server name inside, when there is another one. Both have to pass: a tunnel to a bank in which another name
                is requested may end at another site of the same server.
            user: name of the proxy user, `""` for none.
        """
        try:
            found = self._judge(client, target, user)
            if name and name != target and found.action is not HostAction.DENY:
                inner = self._judge(client, name, user)
                return inner if inner.action is not HostAction.SPLICE or found.action is HostAction.SPLICE else found
        except Exception:  # noqa: BLE001  no failure may let a connection pass unread
            self._complain()
            return INTERCEPT
        return found

    def _judge(self, client: str, host: str, user: str) -> HostVerdict:
        found = self._engine.decide_host(host, client, user)
        if found.action is HostAction.SPLICE and not self._settings.splice:
            return INTERCEPT
        if (
            found.action is HostAction.INTERCEPT
            and not found.named
            and self._pinned_apps is not None
            and self._pinned_apps.covers(client, host)
            and is_name(host)
        ):
            return replace(_LEARNED, connect_to=found.connect_to) if found.connect_to else _LEARNED
        return found

    def may_change(self) -> bool:
        """Returns whether there are policies of clients, or pages that were approved on request."""
        return self._engine.policy_mark() is not None

    def count_use(self, client: str, host: str, user: str) -> None:
        """Counts bytes that passed a connection unread as use of quotas."""
        if self._usage is not None and self._usage.active:
            self._usage.relayed(client, host, user)

    def may_learn(self, client: str, host: str) -> bool:
        """Returns whether a host may come to pass through: it is a name, and no block concerns it."""
        found = self.judge(client, host)
        return found.action is HostAction.INTERCEPT and not found.named and is_name(host)

    def shows_page(self, client: str, host: str) -> bool:
        """Returns whether a blocked host is answered with a page: so set, and the device takes pages of ours."""
        if self._settings.deny is DenyRule.ALERT:
            return False
        return self._pinned_apps is None or not self._pinned_apps.distrusts(client, host)

    def record(self, client: str, host: str, port: int, verdict: Verdict, started_ns: int, user: str = "") -> None:
        """Counts and logs a connection that no request will be logged of.

        Args:
            client: the client's address.
            host: canonical.
            port: where it leads.
            verdict: what was decided, and why.
            started_ns: `time.perf_counter_ns()` when the decision began.
            user: name of the proxy user, `""` for none.
        """
        self._counters.add("requests")
        if verdict.blocked:
            self._counters.add("blocked")
            self._counters.add("denied")
        else:
            self._counters.add("spliced")
        if self._recorder is None:
            return
        request = _request(client, host, port, user)
        if request is not None:
            self._recorder.record(request, verdict, (time.perf_counter_ns() - started_ns) // 1000)

    def _complain(self) -> None:
        self._counters.add("hook_errors")
        now = self._clock()
        if now - self._complained_at >= _COMPLAIN_EVERY_S:
            self._complained_at = now
            _log.exception("deciding a connection failed; it is decrypted and its requests are judged")


def is_name(host: str) -> bool:
    """Returns whether a host is a name: behind an address any site may answer, the blocked ones of its server, too."""
    try:
        return not is_ip_literal(canonical_host(host))
    except UrlError:
        return False


@lru_cache(maxsize=1024)
def _request(client: str, host: str, port: int, user: str) -> Request | None:
    """Returns what a connection is logged as, `None` when its host is none."""
    try:
        url = parse_url(f"https://{host}:{port}/")
    except UrlError:
        return None
    return Request(url, None, ResourceType.OTHER, "CONNECT", client, user)

"""The filter engine: runs the deciders in order, over a state that is swapped atomically while requests are being decided."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from threading import Lock

from gatewayfilter.engine.adblock_changes import change_response
from gatewayfilter.engine.approved_parts import lifted, open_for_parts, tell_part
from gatewayfilter.engine.compiled_policies import CompiledPolicies
from gatewayfilter.engine.deciders import DECIDERS, ManualDecider
from gatewayfilter.engine.explanations import explain
from gatewayfilter.engine.host_decision import decide_host
from gatewayfilter.engine.policies.effective_policy import ListSelection
from gatewayfilter.engine.policies.request_rules import RequestRules
from gatewayfilter.engine.policies.service_index import NO_SERVICES
from gatewayfilter.engine.policy_decision import (
    decide_by_policy,
    decide_host_by_policy,
    enforcement_on,
    in_force,
    view_with_rules,
)
from gatewayfilter.engine.policy_explanation import explain_by_policy
from gatewayfilter.engine.question import Question
from gatewayfilter.engine.quota_use import quotas_used
from gatewayfilter.engine.snapshot.reader import Snapshot
from gatewayfilter.engine.state.engine_state import EngineState
from gatewayfilter.engine.state.overlay import Overlay, touches_hosts
from gatewayfilter.errors import UrlError
from gatewayfilter.interfaces import RecognizedClient
from gatewayfilter.model import (
    Action,
    Change,
    DeciderAnswer,
    Enforcement,
    Explanation,
    HostAction,
    HostVerdict,
    LogDetail,
    QuotasUsed,
    Reason,
    Request,
    RequestChange,
    ResponseChange,
    Service,
    Verdict,
)
from gatewayfilter.urls import canonical_host

_DECIDE = tuple(decider.decide for decider in DECIDERS)
_DECIDE_WITHOUT_RULES = tuple(decider.decide for decider in DECIDERS if not isinstance(decider, ManualDecider))
"""The same without manual rules, as in most networks: one call less per request."""
_NOT_RECOGNIZED = RecognizedClient(scopes=("group:default", ""))
_BLOCK = Action.BLOCK
_BAD_REQUEST = Verdict(Action.BLOCK, Reason.BAD_REQUEST, detail="the URL contains characters that no URL can have")


class FilterEngine:
    """Decides requests (`interfaces.Decide`) and returns rules' changes to allowed traffic (`interfaces.ChangeTraffic`).

    Safe for any number of threads, without locks.

    Args:
        snapshot: the lists; the engine keeps it open.
        off_categories: categories of lists that neither block nor stub.
        clock: Unix seconds, for entries that expire.
        services: the catalogue of services.

    Attributes:
        off_categories: as given.
        varies_log: whether `log_detail` may differ from `log.privacy` for any client.
        clock: as given.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        *,
        off_categories: Collection[str] = (),
        clock: Callable[[], float] = time.time,
        services: Mapping[str, Service] = NO_SERVICES.services,
    ) -> None:
        self.clock = clock
        self._writing = Lock()
        overlay = Overlay.over(snapshot.rules, snapshot.info.feed_seq, snapshot.policies)
        self.off_categories = frozenset(off_categories) - {""}
        self._policies = CompiledPolicies(self.off_categories, clock)
        self.varies_log = False
        self._policies.set_services(services)
        self._state = self._install(self._policies.put_into(EngineState(snapshot, overlay, ListSelection(self.off_categories))))

    @property
    def feed_seq(self) -> int:
        """The newest step of the change feed in this engine."""
        return self._state.overlay.seq

    @property
    def state(self) -> EngineState:
        """The state in use: a consistent pair of snapshot and changes."""
        return self._state

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot in use."""
        return self._state.snapshot

    def decide(self, request: Request) -> Verdict:
        """Returns the verdict; never raises for any request that could be built."""
        try:
            state = self._state
            if state.policies is not None:
                return decide_by_policy(state, request, self.clock())
            question = Question(state, request, self.clock())
            for decide in _DECIDE if state.lists.rules is not None else _DECIDE_WITHOUT_RULES:
                verdict = decide(question)
                if verdict is not None:
                    if verdict.action is _BLOCK and state.overlay.rules.approves:
                        return lifted(state, (), request, verdict, question.now) or verdict
                    return verdict
        except UnicodeError:  # a URL with lone surrogates, not created by parse_url
            return _BAD_REQUEST
        raise AssertionError("the last decider has an answer to everything")

    def change_request(self, request: Request) -> RequestChange | None:
        """Returns what Adblock rules change in an allowed request, `None` for nothing; never raises."""
        state = self._state
        found = None
        if state.policies is not None:
            state, rules = view_with_rules(state, request, self.clock())
            found = rules.change_of(request) if rules is not None else None
        try:
            change = state.effects.change_request(request, state.source_names, state.off_sources)
        except UnicodeError:  # as in `decide`
            change = None
        if found is None or change is None:
            return change or found
        return replace(change, enforced=found.enforced, form=found.form)

    def enforced(self, request: Request) -> Enforcement | None:
        """Returns what the client's policy changes in a request, whatever rules allow it; `None` for nothing."""
        return enforcement_on(self._state, request.url.host, request.client, request.user, self.clock())

    def enforced_address(self, host: str, client: str, user: str = "") -> str:
        """Returns where connections to a host have to end for a client, a host or address; `""` for its own addresses."""
        if self._state.policies is None:
            return ""
        try:
            found = enforcement_on(self._state, canonical_host(host), client, user, self.clock())
        except (UrlError, UnicodeError):
            return ""
        return found.address if found is not None else ""

    def request_rules(self, client: str, user: str = "") -> RequestRules | None:
        """Returns what acts on the requests of a client now, `None` for nothing."""
        state = self._state
        return None if state.policies is None else in_force(state, client, user, self.clock())[1].requests

    def change_response(
        self, request: Request, status: int, headers: Mapping[str, str], address: str = ""
    ) -> ResponseChange | None:
        """Returns what Adblock rules change in the response, `None` for nothing; never raises.

        Args:
            request: the request.
            status: HTTP status; for a redirection or an error only the headers are processed, not the page.
            headers: of the response, lower-case names.
            address: of the server that answers, `""` when unknown.
        """
        state = self._state
        downloads = None
        if state.policies is not None:
            state, rules = view_with_rules(state, request, self.clock())
            downloads = rules.downloads if rules is not None else None
        try:
            change = change_response(state, request, status, headers, address)
        except UnicodeError:
            change = None
        if downloads is None:
            return change
        return ResponseChange(downloads=downloads) if change is None else replace(change, downloads=downloads)

    def decide_host(self, host: str, client: str = "", user: str = "") -> HostVerdict:
        """Returns deny, splice or intercept for a host name or address literal; never raises (`interfaces.DecideHost`)."""
        state = self._state
        if state.policies is not None:
            found = decide_host_by_policy(state, host, client, user, self.clock())
            denied = found.action is HostAction.DENY
            return open_for_parts(state, state.policies.find(client, user).scopes, found) if denied else found
        found = decide_host(state, host, client, self.clock())
        return open_for_parts(state, (), found) if found.action is HostAction.DENY else found

    def recognize(self, address: str, user: str = "") -> RecognizedClient:
        """Returns a client as policies recognize it (`interfaces.RecognizeClient`); never raises."""
        state = self._state
        if state.policies is None:
            return _NOT_RECOGNIZED
        found, effective = in_force(state, address, user, self.clock())
        return RecognizedClient(
            found.client.name if found.client is not None else "", (*found.scopes, ""), effective.takes_requests
        )

    def explain(self, request: Request) -> Explanation:
        """Returns every decider's answer, in order, including those after the decision, and the verdict of `decide`."""
        state = self._state
        try:
            if state.policies is not None:
                return explain_by_policy(state, request, self.clock())
            question = Question(state, request, self.clock())
            answers: list[DeciderAnswer] = []
            verdict: Verdict | None = None
            for decider in DECIDERS:
                own = decider.decide(question)
                verdict = verdict or own
                answers.append(explain(decider, question, own))
        except UnicodeError:
            return Explanation(request, (), _BAD_REQUEST)
        assert verdict is not None
        part = lifted(state, (), request, verdict, question.now) if verdict.blocked else None
        return Explanation(request, (*answers, *tell_part(part)), part or verdict)

    def apply(self, changes: Sequence[Change]) -> None:
        """Applies changes of the lists; steps that are known already have no effect. Costs a copy of the overlay."""
        with self._writing:
            state = self._state
            overlay = state.overlay.changed(changes)
            if overlay is state.overlay:
                return
            changed = state.with_overlay(overlay, hosts_hold=not touches_hosts(changes))
            same = overlay.policies is state.overlay.policies
            self._state = self._install(changed if same else self._policies.put_into(changed))

    def set_neighbours(self, neighbours: Mapping[str, str]) -> None:
        """Takes in the devices on this machine's links (address → MAC), by which clients are recognized."""
        with self._writing:
            if self._policies.set_neighbours(neighbours, self._state.policies):
                self._state = self._install(self._policies.put_into(self._state))

    def policy_mark(self) -> tuple[int, ...] | None:
        """Returns a value that changes whenever policies or approvals may decide otherwise, `None` while there are none."""
        state = self._state
        now = self.clock()
        approvals = tuple(number for until, number in state.overlay.rules.approvals if now < until)
        if state.policies is None:
            return (hash(approvals),) if approvals else None
        return (*self._policies.mark(state.policies), hash(approvals))

    def decision_mark(self) -> tuple[object, ...]:
        """Returns a value that differs from those before whenever lists, rules, policies or approvals may decide otherwise."""
        state = self._state
        return state.snapshot.mark, state.overlay.seq, self.policy_mark()

    def log_detail(self, client: str, user: str = "") -> LogDetail | None:
        """Returns what the log keeps of a client's requests, `None` for what `log.privacy` says."""
        rules = self.request_rules(client, user)
        return rules.log_detail if rules is not None else None

    def _install(self, state: EngineState) -> EngineState:
        self.varies_log = state.policies is not None and state.policies.varies_log
        return state

    @property
    def services(self) -> Mapping[str, Service]:
        """The catalogue of services, by id."""
        return self._policies.services

    def set_services(self, services: Mapping[str, Service]) -> None:
        """Takes in another catalogue of services."""
        with self._writing:
            self._policies.set_services(services)
            self._state = self._install(self._policies.put_into(self._state))

    def has_quotas(self) -> bool:
        """Returns whether any use has to be counted (`quotas_used`)."""
        policies = self._state.policies
        return policies is not None and policies.has_quotas

    def quotas_used(self, request: Request, verdict: Verdict, *, own: bool) -> QuotasUsed | None:
        """Returns the quotas that an allowed request uses, `None` for none; never raises (`interfaces.CountQuotas`).

        Args:
            request: the request.
            verdict: allows it.
            own: the request is the user's own doing; of others only those for what is played count.
        """
        state = self._state
        if state.policies is None or not state.policies.has_quotas:
            return None
        try:
            return quotas_used(state, request, verdict, self.clock(), own=own)
        except UnicodeError:  # as in `decide`
            return None

    def keep_time(self) -> None:
        """Compiles the policies of clients again where that is due: every hour, and when the clock was set."""
        if self._state.policies is None or not self._policies.is_due():
            return
        with self._writing:
            self._state = self._install(self._policies.put_into(self._state))

    def swap(self, snapshot: Snapshot, changes: Sequence[Change] = (), *, adopts: bool = True) -> None:
        """Swaps in another snapshot, with the changes that it does not include: those given and those known here.

        The old snapshot is not closed, as requests that are being decided still read it; it is freed with its last reader. If an
        exception is raised, the old snapshot stays in use.

        Args:
            snapshot: verified.
            changes: of the lists.
            adopts: equal Adblock rules may be reused from the old snapshot, which is not damaged.
        """
        with self._writing:
            old = self._state
            # With an older snapshot there would be a gap before the changes known here: the caller reads the feed again.
            older = snapshot.info.feed_seq < old.snapshot.info.feed_seq
            known = () if older else old.overlay.changes.values()
            overlay = Overlay.over(snapshot.rules, snapshot.info.feed_seq, snapshot.policies).changed([*known, *changes])
            if adopts:
                snapshot.adopt(old.snapshot)
            self._state = self._install(
                self._policies.put_into(EngineState(snapshot, overlay, ListSelection(self.off_categories)))
            )

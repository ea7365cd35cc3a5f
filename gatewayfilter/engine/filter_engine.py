"""The decision: asks the deciders in order, over a state that is swapped whole while requests are being decided."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from threading import Lock

from gatewayfilter.engine.deciders import DECIDERS, ManualDecider
from gatewayfilter.engine.explanations import explain
from gatewayfilter.engine.host_decision import decide_host
from gatewayfilter.engine.question import Question
from gatewayfilter.engine.snapshot.reader import Snapshot
from gatewayfilter.engine.state.engine_state import EngineState
from gatewayfilter.engine.state.overlay import Overlay, touches_hosts
from gatewayfilter.engine.traffic_changes import change_response
from gatewayfilter.model import (
    Action,
    Change,
    DeciderAnswer,
    Explanation,
    HostVerdict,
    Reason,
    Request,
    RequestChange,
    ResponseChange,
    Verdict,
)

_DECIDE = tuple(decider.decide for decider in DECIDERS)
_DECIDE_WITHOUT_RULES = tuple(decider.decide for decider in DECIDERS if not isinstance(decider, ManualDecider))
"""The same where there are no manual rules, as in most networks: one call less for each request."""
_BAD_REQUEST = Verdict(Action.BLOCK, Reason.BAD_REQUEST, detail="the URL contains characters that no URL can have")


class FilterEngine:
    """Decides requests (`interfaces.Decide`) and says what rules change in what is allowed (`interfaces.ChangeTraffic`).

    Any number of threads may ask; asking never locks.

    Args:
        snapshot: the lists; the engine keeps it open.
        off_categories: categories whose lists neither block nor stub.
        clock: Unix seconds, for what expires.
    """

    def __init__(
        self, snapshot: Snapshot, *, off_categories: Collection[str] = (), clock: Callable[[], float] = time.time
    ) -> None:
        self._clock = clock
        self._writing = Lock()
        overlay = Overlay.over(snapshot.rules, snapshot.info.feed_seq)
        self._state = EngineState(snapshot, overlay, frozenset(off_categories) - {""})

    @property
    def feed_seq(self) -> int:
        """The newest step of the change feed that this engine knows."""
        return self._state.overlay.seq

    @property
    def state(self) -> EngineState:
        """The state in use: snapshot and changes of one moment."""
        return self._state

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot in use."""
        return self._state.snapshot

    def decide(self, request: Request) -> Verdict:
        """Returns the verdict; never raises for any request that could be built."""
        try:
            state = self._state
            question = Question(state, request, self._clock())
            for decide in _DECIDE if state.lists.rules is not None else _DECIDE_WITHOUT_RULES:
                verdict = decide(question)
                if verdict is not None:
                    return verdict
        except UnicodeError:  # a URL that was not made by parse_url, with lone surrogates
            return _BAD_REQUEST
        raise AssertionError("the last decider has an answer to everything")

    def change_request(self, request: Request) -> RequestChange | None:
        """Returns what Adblock rules change in an allowed request, `None` for nothing; never raises."""
        state = self._state
        try:
            return state.effects.change_request(request, state.source_names, state.off_sources)
        except UnicodeError:  # as in `decide`
            return None

    def change_response(
        self, request: Request, status: int, headers: Mapping[str, str], address: str = ""
    ) -> ResponseChange | None:
        """Returns what Adblock rules change in the response, `None` for nothing; never raises.

        Args:
            request: what was asked.
            status: HTTP status; of a redirection or an error the headers count, the page does not.
            headers: of the response, lower-case names.
            address: of the server that answers, `""` when unknown.
        """
        try:
            return change_response(self._state, request, status, headers, address)
        except UnicodeError:
            return None

    def decide_host(self, host: str, client: str = "") -> HostVerdict:
        """Returns deny, splice or intercept for a host name or address literal; never raises (`interfaces.DecideHost`)."""
        return decide_host(self._state, host, client, self._clock())

    def explain(self, request: Request) -> Explanation:
        """Returns every decider's answer, in order, also of those after the decision, and the verdict that `decide` gives."""
        try:
            question = Question(self._state, request, self._clock())
            answers: list[DeciderAnswer] = []
            verdict: Verdict | None = None
            for decider in DECIDERS:
                own = decider.decide(question)
                verdict = verdict or own
                answers.append(explain(decider, question, own))
        except UnicodeError:
            return Explanation(request, (), _BAD_REQUEST)
        assert verdict is not None
        return Explanation(request, tuple(answers), verdict)

    def apply(self, changes: Sequence[Change]) -> None:
        """Takes changes of the lists into effect; steps that are known already do nothing. Costs a copy of the overlay."""
        with self._writing:
            state = self._state
            overlay = state.overlay.changed(changes)
            if overlay is not state.overlay:
                self._state = state.with_overlay(overlay, hosts_hold=not touches_hosts(changes))

    def swap(self, snapshot: Snapshot, changes: Sequence[Change] = (), *, adopts: bool = True) -> None:
        """Takes another snapshot into use, with the changes that it does not hold yet: those given and those known here.

        The old snapshot is not closed: requests that are being decided still read it; it goes with its last reader. Whatever is
        raised on the way, the old one stays in use.

        Args:
            snapshot: verified.
            changes: of the lists.
            adopts: Adblock rules that are the same may be taken over from the old snapshot, which is not damaged.
        """
        with self._writing:
            old = self._state
            # Under an older snapshot the changes known here would leave a gap before them: the caller reads the feed again.
            older = snapshot.info.feed_seq < old.snapshot.info.feed_seq
            known = () if older else old.overlay.changes.values()
            overlay = Overlay.over(snapshot.rules, snapshot.info.feed_seq).changed([*known, *changes])
            if adopts:
                snapshot.adopt(old.snapshot)
            self._state = EngineState(snapshot, overlay, old.lists.off_categories)

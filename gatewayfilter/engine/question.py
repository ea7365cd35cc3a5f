"""The question: one request as the deciders see it, with their intermediate findings."""

from collections.abc import Sequence

from gatewayfilter.engine.adblock.syntax.rule import AdblockMatch
from gatewayfilter.engine.state.engine_state import EngineState
from gatewayfilter.engine.state.host_cache import HostFacts, work_out
from gatewayfilter.engine.state.list_lookup import KeyAnswer
from gatewayfilter.model import Request
from gatewayfilter.urls import Url


class Question:
    """A request, and the engine state that is used for the whole decision.

    Attributes:
        state: of the engine; `lists` is its view of the lists.
        now: Unix seconds.
        facts: about the URL's host.
        maybe: the URL's own keys that passed the Bloom gate; set by the gate.
        exception: the Adblock exception that cancelled a block; set by the Adblock decider.
    """

    __slots__ = ("exception", "facts", "lists", "maybe", "now", "request", "state", "url")

    def __init__(self, state: EngineState, request: Request, now: float) -> None:
        self.state = state
        self.lists = state.lists
        self.request = request
        self.now = now
        self.url = url = request.url
        facts = state.hosts.young.get(url.netloc)
        self.facts = facts if facts is not None and now < facts.until else _find_facts(state, url, now)
        self.maybe: Sequence[KeyAnswer] = ()
        self.exception: AdblockMatch | None = None

    def prefix_keys(self) -> list[str]:
        """Returns the prefix keys that cover the URL, for hosts with prefix entries."""
        return [key for host in self.facts.prefix_hosts for key in self.url.prefix_keys(host)]


def _find_facts(state: EngineState, url: Url, now: float) -> HostFacts:
    facts = state.hosts.get(url.netloc)
    if facts is None or now >= facts.until:
        facts = work_out(state.lists, url, now, state.services)
        state.hosts.put(url.netloc, facts)
    return facts

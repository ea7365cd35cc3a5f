"""Request classes: what is the same for all requests of one type from one page to one host, computed once and kept.

Nine decisions out of ten follow from the class, from a search of the URL for literals, and from the Bloom gate. The others are
left to the engine, one by one.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from gatewayfilter.engine.adblock.index.bounded_cache import BoundedCache
from gatewayfilter.engine.adblock.matcher import PairRules
from gatewayfilter.engine.deciders import UNKNOWN, adblock_verdict
from gatewayfilter.engine.question import Question
from gatewayfilter.engine.state.engine_state import EngineState
from gatewayfilter.model import Request, ResourceType, Verdict
from gatewayfilter.urls import Url, parse_url

ALLOWS: Final = 1
"""The verdict allows: it stands only where the URL has no other spelling."""
SCANS_BLOCKS: Final = 2
"""URLs are searched for the literals of blocks."""
SCANS_EXCEPTIONS: Final = 4
"""URLs are searched for the literals of exceptions: the verdict is a rule's block."""
_KEPT_BLOCKS: Final = 8

TESTS: Final = 8
"""Rules are tested whether their literals are found or not."""


@dataclass(slots=True)  # a frozen one takes four times as long to make; nothing assigns to it
class RequestClass:
    """Requests of one type from one page to one host.

    Attributes:
        head: scheme and host.
        page: of all of them, `None` when unknown.
        kind: their type.
        verdict: on each whose URL is certainly on no list, that no other rule blocks, and that has no other spellings, if it
            allows. `None` where the engine has to decide each.
        pair: the Adblock rules to be tested first; `None` where there are none.
        does: `ALLOWS`, and what has to be done before the verdict stands: `SCANS_BLOCKS`, `SCANS_EXCEPTIONS`, `TESTS`.
        stubs: a blocked response may be replaced by a stub.
        shared: stands for each of these requests that is a GET; of its URL it has scheme and host alone, and reading more of
            it raises `AttributeError`.
        blocks: the verdicts of rules that blocked requests without a stub, the first few.
    """

    head: str
    page: Url | None
    kind: ResourceType
    verdict: Verdict | None = None
    pair: PairRules | None = None
    does: int = 0
    stubs: bool = False
    shared: Request | None = None
    blocks: dict[int, Verdict | None] = field(default_factory=dict)


class HeadUrl(Url):
    """What many URLs have in common: scheme and host.

    Args:
        scheme: of the URLs.
        host: of the URLs, which name no port.
    """

    __slots__ = ()

    def __init__(self, scheme: str, host: str) -> None:
        self.scheme = scheme
        self.host = self.netloc = host
        self.port = ""


class RequestClasses:
    """The classes of an engine state whose lists do not change and that has no policies and manual rules.

    Args:
        state: of the engine.
        clock: Unix seconds.
    """

    def __init__(self, state: EngineState, clock: Callable[[], float]) -> None:
        self._state = state
        self._clock = clock
        self._suspended: BoundedCache[Url, bool] = BoundedCache(self._find_suspended)
        self._found: BoundedCache[tuple[str, str, str], RequestClass] = BoundedCache(self._find)

    def of(self, head: str, page: str, kind: str) -> RequestClass:
        """Returns a class; all are texts, which keep their hashes.

        Args:
            head: scheme and host, `https://example.org`, in canonical form.
            page: canonical URL of the page that causes the requests, "" when unknown.
            kind: value of their `ResourceType`.
        """
        return self._found[head, page, kind]

    def block_verdict(self, of: RequestClass, rule: int, request: Request) -> Verdict | None:
        """Returns the verdict of a rule that blocks a request and has no exception; `None` where the engine has to decide.

        Args:
            of: the class of the request.
            rule: its number.
            request: the request.
        """
        if of.stubs:
            return self._block_verdict(of, rule, self._state.effects.stub(request, self._state.off_sources))
        if rule in of.blocks:
            return of.blocks[rule]
        verdict = self._block_verdict(of, rule, "")
        if len(of.blocks) < _KEPT_BLOCKS:
            of.blocks[rule] = verdict
        return verdict

    def _block_verdict(self, of: RequestClass, rule: int, stub: str) -> Verdict | None:
        if of.page is not None and self._suspended[of.page]:
            return None
        return adblock_verdict(self._state, self._state.adblock.describe(rule), stub)

    def _find(self, key: tuple[str, str, str]) -> RequestClass:
        head, page_text, kind_name = key
        page, kind = parse_url(page_text) if page_text else None, ResourceType(kind_name)
        scheme, _, host = head.partition("://")
        state = self._state
        request = Request(Url(scheme, host, "", "/", ""), page, kind)
        facts = Question(state, request, self._clock()).facts
        if facts.until != math.inf or facts.prefix_hosts:  # learned entries expire; prefixes depend on the path
            return RequestClass(head, page, kind)
        if facts.black is not None:
            return RequestClass(head, page, kind, facts.black)
        pair = state.adblock.pair(host, page.host if page is not None else "", kind)
        if pair is None:
            return RequestClass(head, page, kind)
        found = RequestClass(head, page, kind, facts.white or UNKNOWN, None, ALLOWS)
        if pair.blocks.is_empty:
            return found
        found.pair = pair
        found.shared = Request(HeadUrl(scheme, host), page, kind)
        found.stubs = state.effects.may_stub(host, pair.source, kind, state.off_sources)
        if pair.blocking >= 0 and not found.stubs:
            blocked = self.block_verdict(found, pair.blocking, request)
            if blocked is not None:
                found.verdict, found.does = blocked, SCANS_EXCEPTIONS * pair.exceptions.scans
                return found
        if pair.blocks.scans:
            found.does |= SCANS_BLOCKS
        if pair.blocks.tests or pair.blocks.certain >= 0:
            found.does |= TESTS
        return found

    def _find_suspended(self, page: Url) -> bool:
        return self._state.effects.suspends_generic(page, self._state.off_sources) is not None

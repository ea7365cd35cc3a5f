"""Decisions on requests of other proxies: the verdict of the engine, counted, logged; unknown pages queued for the crawler."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from gatewayfilter.config import UnknownRule
from gatewayfilter.errors import UrlError
from gatewayfilter.integration.sinks import CountUse, GuessType, RecordDecisions
from gatewayfilter.integration.unknown_pages import UnknownPages
from gatewayfilter.interfaces import DecideReusably
from gatewayfilter.model import Action, HostAction, Reason, Request, ResourceType, UnknownAction, Verdict
from gatewayfilter.model.client_matcher import canonical_address
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import Url, parse_url

_BAD_REQUEST: Final = Verdict(Action.BLOCK, Reason.BAD_REQUEST)
_BLOCK_UNKNOWN: Final = Verdict(Action.BLOCK, Reason.UNKNOWN, unknown=True)
_LONGEST_URL: Final = 65_536
_LONGEST_SOURCE: Final = 2_048
_LONGEST_CLIENT: Final = 100
_UNKNOWN_TTL_S: Final = 5
"""The longest life of the answer for an unknown URL: the page may be judged within seconds."""


@dataclass(slots=True)
class AskedRequest:
    """A request as another proxy describes it; every text is the client's or the origin's choice.

    Attributes:
        url: absolute, or `HOST:PORT` of a CONNECT.
        client: address of the client, `""` when unknown; what is no address counts as unknown.
        user: name under which it logged in to that proxy, `""` without.
        method: of the request.
        referer: `""` without.
        destination: Sec-Fetch-Dest, `""` without.
        accept: `""` without.
        resource_type: where that proxy gives it; `None` to guess it by the fields above.
        private: carries credentials or asks for a part: its URL is not queued for the crawler.
    """

    url: str
    client: str = ""
    user: str = ""
    method: str = "GET"
    referer: str = ""
    destination: str = ""
    accept: str = ""
    resource_type: ResourceType | None = None
    private: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer to an `AskedRequest`.

    Attributes:
        verdict: in force; a block of an unknown URL by the policy included.
        request: as it was judged, `None` where it could not be read.
        ttl_s: how long the other proxy may reuse the answer for the same request, 0 for not at all.
    """

    verdict: Verdict
    request: Request | None = None
    ttl_s: int = 0


class RequestDecider:
    """Decides requests. Neither waits nor raises for any request; to be used in one event loop.

    Args:
        engine: decides.
        counters: `requests`, `blocked`, `unknown`.
        guess_type: returns the resource type of requests.
        unknown: `proxy.unknown`; `hold` and `inspect` count as `allow` here.
        recorder: takes decisions for the log; `None` without a log.
        usage: counts the use of quotas; `None` for none.
        pages: queues unknown pages for the crawler; `None` when nothing is learned.
        ttl_s: the longest life of an answer in caches of other proxies, 0 for none.
    """

    def __init__(  # noqa: PLR0913  each is a part that it is joined from
        self,
        engine: DecideReusably,
        counters: Counters,
        guess_type: GuessType,
        *,
        unknown: UnknownRule = UnknownRule.ALLOW,
        recorder: RecordDecisions | None = None,
        usage: CountUse | None = None,
        pages: UnknownPages | None = None,
        ttl_s: int = 0,
        clock_ns: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self._engine = engine
        self._counters = counters
        self._guess_type = guess_type
        self._unknown = unknown
        self._recorder = recorder
        self._usage = usage
        self._pages = pages
        self._ttl_s = ttl_s
        self._clock_ns = clock_ns
        self._take_time = counters.decision_times.take

    @property
    def ttl_s(self) -> int:
        """The longest life of an answer in caches of other proxies, 0 for none."""
        return self._ttl_s

    def decision_mark(self) -> tuple[object, ...]:
        """Returns a value that differs whenever the same request may be decided otherwise."""
        return self._engine.decision_mark()

    def decide(self, asked: AskedRequest) -> Decision:
        """Decides a request, and counts and logs the decision."""
        started = self._clock_ns()
        try:
            request = self.read(asked)
        except (UrlError, UnicodeError):
            return self._unreadable(asked)
        verdict = self._verdict(request, private=asked.private, tunnel=_is_tunnel(asked, request))
        blocked = verdict.action is Action.BLOCK
        elapsed_us = (self._clock_ns() - started) // 1000
        self._counters.add("requests")
        self._take_time(elapsed_us)
        if blocked:
            self._counters.add("blocked")
        elif self._usage is not None and self._usage.active:
            self._usage.request(request, verdict)
        if self._recorder is not None:
            self._recorder.record(request, verdict, elapsed_us)
        return Decision(verdict, request, self._ttl_of(verdict))

    def peek(self, asked: AskedRequest) -> Decision:
        """Decides a request that is or was decided elsewhere: without a count, a log record or an offer to the crawler."""
        try:
            request = self.read(asked)
        except (UrlError, UnicodeError):
            return Decision(_BAD_REQUEST)
        if _is_tunnel(asked, request):
            return Decision(self._of_host(request), request)
        return Decision(self._engine.decide(request), request)

    def block(self, request: Request, verdict: Verdict) -> None:
        """Counts and logs the block of a response whose request was allowed."""
        self._counters.add("blocked")
        if self._recorder is not None:
            self._recorder.record(request, verdict, 0)

    def read(self, asked: AskedRequest) -> Request:
        """Returns a request as the engine judges it.

        Raises:
            UrlError: its URL cannot be read.
        """
        if len(asked.url) > _LONGEST_URL or len(asked.client) > _LONGEST_CLIENT:
            raise UrlError("a URL or an address that is too long")
        method = asked.method.upper() or "GET"
        if not (method.isascii() and method.isprintable()):
            raise UrlError("a method that is no word")
        client, user = _address(asked.client), _printable(asked.user[:_LONGEST_CLIENT])
        if method == "CONNECT" and "://" not in asked.url:
            return Request(parse_url(f"https://{asked.url}/"), None, ResourceType.OTHER, method, client, user)
        url = parse_url(asked.url)
        return Request(url, _source(asked.referer), asked.resource_type or self._type_of(asked, url), method, client, user)

    def _verdict(self, request: Request, *, private: bool, tunnel: bool) -> Verdict:
        if tunnel:
            return self._of_host(request)
        verdict = self._engine.decide(request)
        if verdict.unknown and verdict.action is not Action.BLOCK:
            self._counters.add("unknown")
            own = verdict.unknown_action
            blocks = self._unknown is UnknownRule.BLOCK if own is None else own is UnknownAction.BLOCK
            if self._pages is not None and not private:
                self._pages.offer(request, frames=blocks)
            if blocks:
                return _BLOCK_UNKNOWN
        return verdict

    def _of_host(self, request: Request) -> Verdict:
        found = self._engine.decide_host(request.url.host, request.client, request.user)
        if found.action is HostAction.DENY and not found.verdict.blocked:
            return Verdict(Action.BLOCK, found.verdict.reason)
        return found.verdict

    def _type_of(self, asked: AskedRequest, url: Url) -> ResourceType:
        fields = ((b"sec-fetch-dest", asked.destination), (b"accept", asked.accept), (b"referer", asked.referer))
        return self._guess_type({name: value for name, value in fields if value}, url.path, websocket=url.scheme in {"ws", "wss"})

    def _unreadable(self, asked: AskedRequest) -> Decision:
        self._counters.add("requests")
        self._counters.add("blocked")
        if self._recorder is not None:
            self._recorder.record_unreadable(_address(asked.client), _printable(asked.method[:_LONGEST_CLIENT]), _BAD_REQUEST)
        return Decision(_BAD_REQUEST)

    def _ttl_of(self, verdict: Verdict) -> int:
        # By policies, schedules, quotas and approvals the same request may be decided otherwise at any moment.
        if not self._ttl_s or self._engine.policy_mark() is not None:
            return 0
        return min(self._ttl_s, _UNKNOWN_TTL_S) if verdict.unknown else self._ttl_s


def _is_tunnel(asked: AskedRequest, request: Request) -> bool:
    # The method is the client's choice: CONNECT with a URL is judged by its URL, not by the host alone.
    return request.method == "CONNECT" and "://" not in asked.url


def _address(text: str) -> str:
    return _canonical(text) if 0 < len(text) <= _LONGEST_CLIENT else ""


@lru_cache(maxsize=4_096)
def _canonical(text: str) -> str:
    try:
        return canonical_address(text)
    except ValueError:
        return ""


def _printable(text: str) -> str:
    return text if text.isprintable() else "".join(mark if mark.isprintable() else "\ufffd" for mark in text)


def _source(text: str) -> Url | None:
    if not text or text == "-" or len(text) > _LONGEST_SOURCE:
        return None
    try:
        return parse_url(text)
    except (UrlError, UnicodeError):
        return None

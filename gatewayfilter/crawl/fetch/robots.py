"""robots.txt (RFC 9309): fetched once per origin, kept for a day."""

import asyncio
import re
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice

from protego import Protego

from gatewayfilter.config import CrawlSettings, RobotsRule
from gatewayfilter.crawl.fetch.fetcher import Fetcher
from gatewayfilter.crawl.net.fetch_errors import BadAnswerError, HostBusyError, RefusedError, UnreachableError
from gatewayfilter.interfaces import Page, Priority
from gatewayfilter.urls import Url, parse_url

MAX_BYTES = 512_000
"""The least that a crawler must read (RFC 9309 §2.5)."""
MAX_ORIGINS = 2_000
TTL_S = 86_400.0
"""A copy must not be used for longer (RFC 9309 §2.4)."""
RETRY_MAX_S = 600.0
"""Longest time between two tries where robots.txt fails; the first comes after 2 s, before the page's own next try."""
MAX_CHARACTERS = 5_000_000
"""Of all that are kept. Their rules take some fifteen bytes a character, and a site with a wildcard in the DNS has any number of
origins, each with a robots.txt of the longest size."""
MAX_SITEMAPS = 20
_LONGEST_SITEMAP = 4096
MAX_DELAY_S = 300.0
"""A longer `Crawl-delay` amounts to a refusal; `per_host_delay_max_s` bounds it further."""
UNREACHABLE_S = 30 * 86_400.0
"""How long an origin whose robots.txt fails is left alone (RFC 9309 §2.3.1.4), counted since this process first tried."""
_AGENT_LINE = re.compile(r"^[ \t]*(user[- ]?agent)[ \t]*[: \t][ \t]*([^\r\n#]*)", re.IGNORECASE | re.MULTILINE)


@dataclass(slots=True)
class _Origin:
    """The rules of an origin's robots.txt.

    Attributes:
        rules: `None` when there are none: everything may be fetched.
        sitemaps: the first that it names, at most `MAX_SITEMAPS`.
        delay_s: wished between two requests (`Crawl-delay`), 0 for none; at most `MAX_DELAY_S`.
        failing_since: when it first could not be had, and not since; `None` while it can. `failure` is the reason,
            `failures` how often in a row.
        known: whether it could be had at any time; its rules of then go on counting.
        characters: of what is kept of it.
    """

    rules: Protego | None = None
    sitemaps: tuple[str, ...] = ()
    delay_s: float = 0.0
    good_until: float = 0.0
    failing_since: float | None = None
    failures: int = 0
    failure: str = ""
    known: bool = False
    characters: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Robots:
    """The robots.txt of at most `MAX_ORIGINS` origins and `MAX_CHARACTERS` in all; the least recently used go first."""

    def __init__(self, settings: CrawlSettings, clock: Callable[[], float] = time.time) -> None:
        self._rule = settings.robots
        self._agent = settings.user_agent.partition("/")[0].strip() or "*"
        self._clock = clock
        self._origins: OrderedDict[str, _Origin] = OrderedDict()
        self._characters = 0

    def __len__(self) -> int:
        return len(self._origins)

    async def check(self, url: Url, fetcher: Fetcher, *, priority: int, patience_s: float) -> None:
        """Returns when the URL may be fetched.

        Args:
            url: what is to be fetched.
            fetcher: with which robots.txt is fetched when it is not known.
            priority: with `robots = "links"`, only what is less urgent than a re-check is subject to robots.txt.
            patience_s: longest wait for the host's turn.

        Raises:
            RefusedError: robots.txt does not allow it.
            UnreachableError: robots.txt cannot be had, so nothing may be fetched yet (RFC 9309 §2.3.1.4).
            ForbiddenAddressError: the origin must not be reached.
        """
        if self._rule is RobotsRule.NEVER or (self._rule is RobotsRule.LINKS and priority <= Priority.RECHECK):
            return
        origin = self._origin(f"{url.scheme}://{url.netloc}")
        if self._clock() >= origin.good_until:
            async with origin.lock:  # one request for all that wait
                if self._clock() >= origin.good_until:
                    await self._refresh(origin, url, fetcher, urgent=priority <= Priority.VISIT, patience_s=patience_s)
        if not origin.known and self._clock() - (origin.failing_since or 0.0) < UNREACHABLE_S:
            raise UnreachableError(f"robots.txt cannot be had: {origin.failure}")
        if origin.rules is not None and not origin.rules.can_fetch(url.text, self._agent):
            raise RefusedError("robots.txt does not allow it")
        if origin.delay_s:
            fetcher.politeness.wishes(url.netloc, origin.delay_s)

    def sitemaps(self, url: str) -> tuple[str, ...]:
        """Returns the sitemaps that the robots.txt of a page's origin names, as far as it was fetched; from any thread."""
        page = parse_url(url)
        origin = self._origins.get(f"{page.scheme}://{page.netloc}")
        return () if origin is None else origin.sitemaps

    async def _refresh(self, origin: _Origin, url: Url, fetcher: Fetcher, *, urgent: bool, patience_s: float) -> None:
        page, failure = await self._ask(url, fetcher, urgent=urgent, patience_s=patience_s)
        now = self._clock()
        if page is None:
            origin.failure = failure
            origin.failures += 1
            origin.failing_since = now if origin.failing_since is None else origin.failing_since
            origin.good_until = now + min(2.0**origin.failures, RETRY_MAX_S)
        else:
            origin.rules = rules = await self._read(page)
            named = () if rules is None else islice(rules.sitemaps, MAX_SITEMAPS)
            origin.sitemaps = tuple(sitemap for sitemap in named if len(sitemap) <= _LONGEST_SITEMAP)
            origin.delay_s = 0.0 if rules is None else min(max(rules.crawl_delay(self._agent) or 0.0, 0.0), MAX_DELAY_S)
            origin.known = True
            origin.failures = 0
            origin.failing_since = None
            origin.good_until = now + TTL_S
            if self._origins.get(f"{url.scheme}://{url.netloc}") is origin:  # not forgotten meanwhile
                self._weigh(origin, 0 if rules is None else len(page.body))

    def _weigh(self, origin: _Origin, characters: int) -> None:
        """Takes note of how much is kept of an origin, and forgets others where it is too much."""
        self._characters += characters - origin.characters
        origin.characters = characters
        while self._characters > MAX_CHARACTERS and len(self._origins) > 1:
            self._forget_first()

    def _forget_first(self) -> None:
        _, gone = self._origins.popitem(last=False)
        self._characters -= gone.characters
        gone.characters = 0

    @staticmethod
    async def _ask(url: Url, fetcher: Fetcher, *, urgent: bool, patience_s: float) -> tuple[Page | None, str]:
        """Returns robots.txt as it was answered, or `None` and why it cannot be had."""
        address = parse_url(f"{url.scheme}://{url.netloc}/robots.txt")
        try:
            page = await fetcher.fetch(address, urgent=urgent, patience_s=patience_s, max_bytes=MAX_BYTES, any_type=True)
        except HostBusyError:
            raise
        except (UnreachableError, BadAnswerError, RefusedError) as error:
            return None, str(error)
        return (None, f"answered with status {page.status}") if page.status >= 500 else (page, "")

    async def _read(self, page: Page) -> Protego | None:
        if not 200 <= page.status < 300:  # 4xx: there are no rules (RFC 9309 §2.3.1.3)
            return None
        text = narrowed(page.body.decode(errors="replace"), self._agent)
        return await asyncio.to_thread(Protego.parse, text)

    def _origin(self, name: str) -> _Origin:
        origin = self._origins.get(name)
        if origin is None:
            origin = self._origins[name] = _Origin()
            if len(self._origins) > MAX_ORIGINS:
                self._forget_first()
        self._origins.move_to_end(name)
        return origin


def narrowed(text: str, agent: str) -> str:
    """Returns a robots.txt in which all agents but `agent` and `*` have one name.

    The parser copies each rule into each agent of its group: thousands of both would take it minutes.
    """
    wanted = agent.lower()

    def rename(match: re.Match[str]) -> str:
        name = match[2].strip().lower()
        return match[0] if name == "*" or name in wanted or wanted in name else f"{match[1]}: other-robot"

    return _AGENT_LINE.sub(rename, text)

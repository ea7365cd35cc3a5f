"""The judgement of pages that pass an ICAP client: by the inspector process, or as the same page was judged a moment ago."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from hashlib import blake2b
from typing import Final

from gatewayfilter.content_encoding import MOST_ENCODINGS, as_shown
from gatewayfilter.errors import InspectError
from gatewayfilter.interfaces import Inspect, PassedResponse
from gatewayfilter.model import Action, Classification, Reason, Verdict
from gatewayfilter.settings import GrowthMode, LearnSettings
from gatewayfilter.telemetry import Counters

FAILURE: Final = Verdict(Action.BLOCK, Reason.FAILURE)
_REMEMBER_S: Final = 60.0
"""How long a judgement holds for the same bytes at the same URL: words and reviews may change meanwhile."""
_MOST_REMEMBERED: Final = 20_000
_SHOWN: Final = frozenset({200, 201, 202, 203, 206, 207, 208, 226})
"""Statuses besides errors whose body a browser shows."""
_PAGES: Final = ("text/html", "application/xhtml+xml", "text/plain")


class PageJudge:
    """Judges pages.

    Args:
        inspect: judges them in another process.
        learn: which categories block at once.
        off_categories: categories that do not block.
        counters: `inspected`, `inspect_failed`, `icap_repeated`.
        limit_s: how long a page may take.
        blocks_failures: what happens to a page that could not be judged.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        inspect: Inspect,
        learn: LearnSettings,
        off_categories: frozenset[str],
        counters: Counters,
        *,
        limit_s: float,
        blocks_failures: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._inspect = inspect
        self._learn = learn
        self._off_categories = off_categories
        self._counters = counters
        self._limit_s = limit_s
        self._blocks_failures = blocks_failures
        self._clock = clock
        self._known: OrderedDict[bytes, tuple[float, Verdict | None]] = OrderedDict()

    @staticmethod
    def is_page(status: int, content_type: str) -> bool:
        """Returns whether a response may be a page that is judged."""
        return (status in _SHOWN or status >= 400) and bool(PageJudge.page_type(content_type))

    @staticmethod
    def page_type(content_type: str) -> str:
        """Returns the part of a Content-Type that names a page, `""` without one; browsers take one of several."""
        parts = [part.strip() for part in content_type.split(",")]
        return next((part for part in reversed(parts) if part.partition(";")[0].strip().lower() in _PAGES), "")

    async def judge(self, response: PassedResponse) -> Verdict | None:
        """Returns the verdict that blocks a page, `None` for a page that passes."""
        if as_shown(response.headers.get("content-encoding", "")).count(",") >= MOST_ENCODINGS:  # some may show it all the same
            return self._failure()
        key = _key(response)
        now = self._clock()
        found = self._known.get(key)
        if found is not None and now < found[0]:
            self._counters.add("icap_repeated")
            return found[1]
        try:
            async with asyncio.timeout(self._limit_s):
                verdict = self._block_of(await self._inspect.inspect(response))
        except (InspectError, TimeoutError):
            return self._failure()
        self._counters.add("inspected")
        self._known.pop(key, None)
        self._known[key] = now + _REMEMBER_S, verdict
        if len(self._known) > _MOST_REMEMBERED:
            self._known.popitem(last=False)
        return verdict

    def _failure(self) -> Verdict | None:
        self._counters.add("inspect_failed")
        return FAILURE if self._blocks_failures else None

    def _block_of(self, found: Classification | None) -> Verdict | None:
        if found is None or not found.harmful or found.category in self._off_categories:
            return None
        if self._learn.mode_of(found.category) is GrowthMode.REVIEW:  # a person decides first
            return None
        return found.block(unknown=True)  # the page was for this visitor alone, as far as the filter can tell


def _key(response: PassedResponse) -> bytes:
    digest = blake2b(response.body, digest_size=16)
    names = (response.headers.get("content-type", ""), response.headers.get("content-encoding", ""))
    digest.update("\0".join((response.url, str(response.status), *names)).encode("utf-8", "replace"))
    return digest.digest()

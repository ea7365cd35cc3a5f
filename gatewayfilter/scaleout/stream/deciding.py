"""The decision on one traffic record, given as texts: what JSON lines, Arrow batches, Kafka and Spark share.

Verdicts are remembered by the texts of a record, since traffic repeats itself. What is remembered are verdicts that time does
not change: not those of learned entries and manual rules, which expire, and none where policies or approvals act.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from gatewayfilter.errors import UrlError
from gatewayfilter.model import Reason, Request, ResourceType, Verdict
from gatewayfilter.model.values.resource_types import TYPES_BY_NAME
from gatewayfilter.urls import Url, parse_url

if TYPE_CHECKING:
    from gatewayfilter.engine.filter_engine import FilterEngine
    from gatewayfilter.interfaces import Decide

GENERATION: Final = 16_384
"""Records of a generation of the memory; there are two, of some 20 MB together with the longest URLs kept."""

LONGEST_KEPT: Final = 512
"""Characters of the longest URL, and of the longest source, that are remembered."""

_LASTING: Final = frozenset({Reason.ADBLOCK, Reason.ADBLOCK_EXCEPTION, Reason.BLACKLIST, Reason.UNKNOWN})

type _Key = tuple[str, object, object, str]


class RecordDecider:
    """Decides records as `engine.decide` does.

    Args:
        engine: decides them.
        client: the address of the client where a record has none.
    """

    def __init__(self, engine: Decide, client: str = "") -> None:
        self._decide = engine.decide
        self._client = client
        self._young: dict[_Key, Verdict] = {}
        self._old: dict[_Key, Verdict] = {}

    @classmethod
    def over(cls, engine: FilterEngine) -> RecordDecider:
        """Returns what decides by an engine whose lists no longer change, with a memory where that is sound."""
        state = engine.state
        lasting = state.policies is None and not state.overlay.rules.approves
        return RememberingDecider(engine) if lasting else cls(engine)

    def verdict(self, url: str, source: object = None, kind: object = None, method: str = "GET", client: str = "") -> Verdict:
        """Returns the verdict on a record.

        Args:
            url: as it was requested.
            source: URL of the page that caused it; what is no URL counts as none.
            kind: name of the resource type; an unknown one counts as other.
            method: of HTTP.
            client: address of the client.

        Raises:
            UrlError: the URL cannot be read as one.
        """
        return self._decide(Request(parse_url(url), page_of(source), type_of(kind), method, client or self._client))


class RememberingDecider(RecordDecider):
    """The same with a bounded memory of verdicts, for an engine whose lists no longer change and that has no policies."""

    def verdict(self, url: str, source: object = None, kind: object = None, method: str = "GET", client: str = "") -> Verdict:
        """Returns the verdict on a record, as `RecordDecider.verdict`.

        Raises:
            UrlError: as there.
        """
        key = (url, source if isinstance(source, str) else None, kind if isinstance(kind, str) else None, method)
        found = self._young.get(key)
        if found is not None:
            return found
        found = self._old.get(key)
        if found is None:
            found = self._decide(Request(parse_url(url), page_of(source), type_of(kind), method, client or self._client))
            if found.reason not in _LASTING or len(url) > LONGEST_KEPT or len(key[1] or "") > LONGEST_KEPT:
                return found
        if len(self._young) >= GENERATION:
            self._old, self._young = self._young, {}
        self._young[key] = found
        return found


def why_no_url(error: UrlError) -> str:
    """Returns the reason why a record has no verdict, bounded in length."""
    return str(error)[:300]


def page_of(value: object) -> Url | None:
    """Returns the page that a record names as its source, `None` for what is no URL."""
    if not isinstance(value, str) or not value:
        return None
    return _page(value) if len(value) <= LONGEST_KEPT else _page.__wrapped__(value)


@lru_cache(maxsize=8192)
def _page(text: str) -> Url | None:
    try:
        return parse_url(text)
    except UrlError:
        return None


def type_of(value: object) -> ResourceType:
    """Returns the resource type of a name; an unknown one counts as other."""
    if not isinstance(value, str):
        return ResourceType.OTHER
    return TYPES_BY_NAME.get(value) or TYPES_BY_NAME.get(value.lower(), ResourceType.OTHER)

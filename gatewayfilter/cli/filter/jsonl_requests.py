"""Requests as JSON lines, decided in batches: the inner loop of `match`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from gatewayfilter.cli.bulk.json_lines import BadLineError, JsonLines
from gatewayfilter.cli.ui.resource_types import BY_NAME
from gatewayfilter.errors import UrlError
from gatewayfilter.model import Request, ResourceType
from gatewayfilter.urls import Url, parse_url

if TYPE_CHECKING:
    from gatewayfilter.engine.engine_image import EngineImage
    from gatewayfilter.interfaces import Decide


class RequestLines(JsonLines):
    """Decides the requests of lines.

    Args:
        engine: decides them.
    """

    added = frozenset({"action", "reason", "rule", "source_list", "category", "error"})

    def __init__(self, engine: Decide) -> None:
        super().__init__()
        self._decide = engine.decide

    def answer(self, record: dict[str, Any]) -> tuple[tuple[str, str], str]:
        """Returns action and reason of a request, and its verdict as JSON.

        Raises:
            BadLineError: the record is no request.
        """
        target = record.get("url")
        if not isinstance(target, str):
            raise BadLineError("no url")
        try:
            url = parse_url(target)
        except UrlError as error:
            raise BadLineError("not a URL", str(error)) from error
        verdict = self._decide(Request(url, _source(record.get("source")), _type(record.get("type"))))
        added = _fragment(verdict.action, verdict.reason, verdict.rule, verdict.source_list, verdict.category)
        return (verdict.action, verdict.reason), added


@dataclass(frozen=True, slots=True)
class RequestWorker:
    """What a worker process decides by. Implements `line_workers.OpenLines`.

    Attributes:
        image: of the engine.
    """

    preload: ClassVar[tuple[str, ...]] = ("gatewayfilter.cli.filter.jsonl_requests", "gatewayfilter.engine.engine_image")
    image: EngineImage

    def open(self) -> JsonLines:
        """Returns what decides lines, over the mapped image."""
        return RequestLines(self.image.open())


def _source(value: object) -> Url | None:
    return _page(value) if isinstance(value, str) and value else None


@lru_cache(maxsize=8192)
def _page(text: str) -> Url | None:
    try:
        return parse_url(text)
    except UrlError:
        return None


def _type(value: object) -> ResourceType:
    if not isinstance(value, str):
        return ResourceType.OTHER
    return BY_NAME.get(value) or BY_NAME.get(value.lower(), ResourceType.OTHER)


@lru_cache(maxsize=65_536)
def _fragment(action: str, reason: str, rule: str, source_list: str, category: str) -> str:
    added = {"action": action, "reason": reason, "rule": rule, "source_list": source_list, "category": category}
    return json.dumps(added)[1:] + "\n"

"""Requests as JSON lines, decided in batches: the inner loop of `match`."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from gatewayfilter.cli.bulk.json_lines import BadLineError, JsonLines
from gatewayfilter.errors import UrlError
from gatewayfilter.scaleout.stream.deciding import RecordDecider

if TYPE_CHECKING:
    from gatewayfilter.model import Verdict


class RequestLines(JsonLines):
    """Decides the requests of lines.

    Args:
        decider: decides them.
        apart: lines without a verdict are kept apart.
    """

    added = frozenset({"action", "reason", "rule", "source_list", "category", "error"})

    def __init__(self, decider: RecordDecider, *, apart: bool = False) -> None:
        super().__init__(apart=apart)
        self._verdict = decider.verdict

    def answer(self, record: dict[str, Any]) -> tuple[tuple[str, str], str]:
        """Returns action and reason of a request, and its verdict as JSON.

        Raises:
            BadLineError: the record is no request.
        """
        target = record.get("url")
        if not isinstance(target, str):
            raise BadLineError("no url")
        try:
            verdict = self._verdict(target, record.get("source"), record.get("type"))
        except UrlError as error:
            raise BadLineError("not a URL", str(error)) from error
        return (verdict.action, verdict.reason), verdict_text(verdict)


def verdict_text(verdict: Verdict) -> str:
    """Returns the fields of a verdict that are added to a record: JSON after its `{`, with a line end."""
    return _fragment(verdict.action, verdict.reason, verdict.rule, verdict.source_list, verdict.category)


@lru_cache(maxsize=65_536)
def _fragment(action: str, reason: str, rule: str, source_list: str, category: str) -> str:
    added = {"action": action, "reason": reason, "rule": rule, "source_list": source_list, "category": category}
    return json.dumps(added)[1:] + "\n"

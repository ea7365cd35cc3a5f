"""Requests as JSON lines, decided in batches: the inner loop of `match`.

The verdict is spliced into the text of a line, which keeps foreign fields as they are and spares writing the JSON anew.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, Any, BinaryIO

from gatewayfilter.cli.resource_types import BY_NAME
from gatewayfilter.errors import UrlError
from gatewayfilter.model import Request, ResourceType
from gatewayfilter.urls import Url, parse_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gatewayfilter.interfaces import Decide

_CHUNK = 1 << 16
_read_json = json.JSONDecoder().decode
_RESULT_FIELDS = frozenset({"action", "reason", "rule", "source_list", "category", "error"})


def read_batches(stream: BinaryIO) -> Iterator[list[bytes]]:
    """Yields the complete lines of what is there to read, so that a slow producer sees its answers at once."""
    read = getattr(stream, "read1", stream.read)
    parts: list[bytes] = []
    while chunk := read(_CHUNK):
        head, newline, tail = chunk.rpartition(b"\n")
        if newline:
            yield b"".join((*parts, head)).split(b"\n")
            parts = [tail]
        else:
            parts.append(chunk)
    if last := b"".join(parts):
        yield [last]


class RequestLines:
    """Decides lines.

    Attributes:
        counts: (action, reason) → lines; lines without a request under (`error`, why).
    """

    def __init__(self, engine: Decide) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self._decide = engine.decide

    def decide(self, lines: Iterable[bytes]) -> bytes:
        """Returns the lines with their verdicts, one for each that is not blank."""
        return "".join([self._line(text) for line in lines if (text := line.strip())]).encode()

    def _line(self, line: bytes) -> str:
        try:
            text = line.decode().removeprefix("\ufeff")
            record = _read_json(text)
        except (ValueError, RecursionError):
            return self._without_verdict({"input": line.decode(errors="replace")}, "not JSON")
        if not isinstance(record, dict):
            return self._without_verdict({"input": record}, "not an object")
        target = record.get("url")
        if not isinstance(target, str):
            return self._without_verdict(record, "no url")
        try:
            url = parse_url(target)
        except UrlError as error:
            return self._without_verdict(record, "not a URL", str(error))
        verdict = self._decide(Request(url, _source(record.get("source")), _type(record.get("type"))))
        self.counts[verdict.action, verdict.reason] += 1
        added = _fragment(verdict.action, verdict.reason, verdict.rule, verdict.source_list, verdict.category)
        if _RESULT_FIELDS.isdisjoint(record):
            return f"{text[:-1]}, {added}"
        kept = {name: value for name, value in record.items() if name not in _RESULT_FIELDS}
        return f"{json.dumps(kept)[:-1]}, {added}"

    def _without_verdict(self, record: dict[str, Any], why: str, sentence: str = "") -> str:
        self.counts["error", why] += 1
        kept = {name: value for name, value in record.items() if name not in _RESULT_FIELDS}
        return json.dumps({**kept, "error": sentence or why}) + "\n"


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

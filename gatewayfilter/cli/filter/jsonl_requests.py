"""Requests as JSON lines, decided in batches: the inner loop of `match`.

The verdict is spliced into the text of a line, which keeps foreign fields as they are and saves encoding the JSON again.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from gatewayfilter.cli.ui.resource_types import BY_NAME
from gatewayfilter.errors import UrlError
from gatewayfilter.model import Request, ResourceType
from gatewayfilter.urls import Url, parse_url

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gatewayfilter.interfaces import Decide

CHUNK = 1 << 17
"""Bytes that are read at once and make a batch: some 500 lines, a few milliseconds of work."""

MAX_LINE = 1 << 20
"""Bytes of a line; what follows in a longer one is dropped, so that input without line breaks takes no more memory than this."""

REPORTED = 20
"""Bad lines of a batch that are named; the others are counted."""

_ECHOED = 2_000
_read_json = json.JSONDecoder().decode
_RESULT_FIELDS = frozenset({"action", "reason", "rule", "source_list", "category", "error"})


class Batch(NamedTuple):
    """Lines that are decided together.

    Attributes:
        first: number of the first line in the input, from 1.
        lines: without line ends.
        size: bytes of input, for showing progress.
    """

    first: int
    lines: list[bytes]
    size: int


class Answers(NamedTuple):
    """What became of a batch.

    Attributes:
        text: one line for each that was not blank.
        counts: (action, reason) → lines; lines without a request under (`error`, why).
        bad: number and fault of the first lines that held no request, at most `REPORTED`.
        size: as in the batch.
        cpu_s: CPU seconds that deciding took.
    """

    text: bytes
    counts: Counter[tuple[str, str]]
    bad: list[tuple[int, str]]
    size: int
    cpu_s: float


def read_batches(stream: BinaryIO) -> Iterator[Batch]:
    """Yields the complete lines of what is there to read, so that a slow producer sees its answers at once."""
    read = getattr(stream, "read1", stream.read)
    parts: list[bytes] = []
    kept = size = 0
    number = 1
    while chunk := read(CHUNK):
        size += len(chunk)
        head, newline, tail = chunk.rpartition(b"\n")
        if newline:
            lines = b"".join((*parts, head)).split(b"\n")
            yield Batch(number, lines, size)
            number += len(lines)
            parts, kept, size = [tail], len(tail), 0
        elif kept <= MAX_LINE:
            parts.append(chunk)
            kept += len(chunk)
    if last := b"".join(parts):
        yield Batch(number, [last], size)


class RequestLines:
    """Decides lines, batch by batch."""

    def __init__(self, engine: Decide) -> None:
        self._decide = engine.decide
        self._counts: Counter[tuple[str, str]] = Counter()
        self._bad: list[tuple[int, str]] = []
        self._number = 0

    def decide(self, batch: Batch) -> Answers:
        """Returns the lines with their verdicts, one for each that is not blank."""
        started = time.process_time()
        self._bad, self._counts = [], Counter()
        texts = []
        for self._number, line in enumerate(batch.lines, batch.first):
            if bare := line.strip():
                texts.append(self._line(bare))
        text = "".join(texts).encode()
        return Answers(text, self._counts, self._bad, batch.size, time.process_time() - started)

    def _line(self, line: bytes) -> str:
        if len(line) > MAX_LINE:
            return self._without_verdict({"input": line[:_ECHOED].decode(errors="replace")}, "line too long")
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
        self._counts[verdict.action, verdict.reason] += 1
        added = _fragment(verdict.action, verdict.reason, verdict.rule, verdict.source_list, verdict.category)
        if _RESULT_FIELDS.isdisjoint(record):
            return f"{text[:-1]}, {added}"
        kept = {name: value for name, value in record.items() if name not in _RESULT_FIELDS}
        return f"{json.dumps(kept)[:-1]}, {added}"

    def _without_verdict(self, record: dict[str, Any], why: str, sentence: str = "") -> str:
        self._counts["error", why] += 1
        if len(self._bad) < REPORTED:
            self._bad.append((self._number, sentence or why))
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

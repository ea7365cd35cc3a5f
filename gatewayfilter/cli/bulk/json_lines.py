"""JSON lines, answered in batches: the loop that bulk commands share.

The answer is spliced into the text of a line, which keeps foreign fields as they are and saves encoding the JSON again.
"""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from codecs import BOM_UTF8
from collections import Counter
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNK = 1 << 17
"""Bytes that are read at once and make a batch: some 500 requests or a few pages, milliseconds of work."""

MAX_LINE = 1 << 20
"""Bytes of a line; what follows in a longer one is dropped, so that input without line breaks takes no more memory than this."""

REPORTED = 20
"""Bad lines of a batch that are named; the others are counted."""

_ECHOED = 2_000
_read_json = json.JSONDecoder().decode


class Batch(NamedTuple):
    """Lines that are answered together.

    Attributes:
        first: number of the first line in the input, from 1.
        lines: without line ends.
        size: bytes of input, for showing progress.
    """

    first: int
    lines: list[bytes]
    size: int


class Answers(NamedTuple):
    """The answers to a batch.

    Attributes:
        text: one line for each that was not blank.
        counts: two words that name a result → lines; lines without an answer under (`error`, why).
        bad: number and fault of the first lines without an answer, at most `REPORTED`.
        size: as in the batch.
        cpu_s: CPU seconds that answering took.
    """

    text: bytes
    counts: Counter[tuple[str, str]]
    bad: list[tuple[int, str]]
    size: int
    cpu_s: float


class BadLineError(Exception):
    """A line has no answer.

    Args:
        why: the kind of fault, for counting.
        sentence: the fault in full, `""` when `why` is all of it.
    """

    def __init__(self, why: str, sentence: str = "") -> None:
        super().__init__(sentence or why)
        self.why = why
        self.sentence = sentence or why


def read_batches(stream: BinaryIO, max_line: int = MAX_LINE) -> Iterator[Batch]:
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
        elif kept <= max_line:
            parts.append(chunk)
            kept += len(chunk)
    if last := b"".join(parts):
        yield Batch(number, [last], size)


class JsonLines(ABC):
    """Answers lines, batch by batch. A subclass answers one record.

    Attributes:
        added: the fields that an answer may add; those of the same name in the input are left out.
        max_line: bytes of the longest line that is answered.
    """

    added: ClassVar[frozenset[str]]
    max_line: ClassVar[int] = MAX_LINE

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self._bad: list[tuple[int, str]] = []
        self._number = 0

    def decide(self, batch: Batch) -> Answers:
        """Returns the lines with their answers, one for each that is not blank."""
        started = time.process_time()
        self._bad, self._counts = [], Counter()
        texts = []
        for self._number, line in enumerate(batch.lines, batch.first):
            if bare := line.strip():
                texts.append(self._line(bare))
        return Answers(b"".join(texts), self._counts, self._bad, batch.size, time.process_time() - started)

    @abstractmethod
    def answer(self, record: dict[str, Any]) -> tuple[tuple[str, str], str]:
        """Returns two words that name the result, for counting, and the fields to add: JSON after its `{`, with a line end.

        Raises:
            BadLineError: there is no answer to this record.
        """

    def _line(self, line: bytes) -> bytes:
        if len(line) > self.max_line:
            return self._without_answer({"input": line[:_ECHOED].decode(errors="replace")}, BadLineError("line too long"))
        line = line.removeprefix(BOM_UTF8)
        try:
            record = _read_json(line.decode())
        except (ValueError, RecursionError):
            return self._without_answer({"input": line.decode(errors="replace")}, BadLineError("not JSON"))
        if not isinstance(record, dict):
            return self._without_answer({"input": record}, BadLineError("not an object"))
        try:
            counted, added = self.answer(record)
        except BadLineError as error:
            return self._without_answer(record, error)
        self._counts[counted] += 1
        if not self.added.isdisjoint(record):
            line = json.dumps(self._kept(record)).encode()
        comma = b", " if record and line != b"{}" else b""
        return b"%b%b%b" % (line[:-1], comma, added.encode())

    def _without_answer(self, record: dict[str, Any], error: BadLineError) -> bytes:
        self._counts["error", error.why] += 1
        if len(self._bad) < REPORTED:
            self._bad.append((self._number, error.sentence))
        return json.dumps({**self._kept(record), "error": error.sentence}).encode() + b"\n"

    def _kept(self, record: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in record.items() if name not in self.added}

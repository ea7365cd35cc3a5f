"""Lines answered in batches: the loop that bulk commands share; lines of JSON, or of another format.

The answer is spliced into the text of a line of JSON, which keeps foreign fields as they are and saves encoding the JSON again.
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
_KEPT_APART = 100_000
"""Bytes of a bad line that is kept apart."""

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
        dead: lines without an answer that are kept apart: JSON with number, fault and text, one line each.
    """

    text: bytes
    counts: Counter[tuple[str, str]]
    bad: list[tuple[int, str]]
    size: int
    cpu_s: float
    dead: bytes = b""


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


class BulkLines(ABC):
    """Answers lines, batch by batch. A subclass answers one line.

    Args:
        apart: lines without an answer are kept apart, not among the answers.

    Attributes:
        max_line: bytes of the longest line that is answered.
    """

    max_line: ClassVar[int] = MAX_LINE

    def __init__(self, *, apart: bool = False) -> None:
        self._apart = apart
        self._counts: Counter[tuple[str, str]] = Counter()
        self._bad: list[tuple[int, str]] = []
        self._dead: list[bytes] = []
        self._number = 0

    def batches(self, stream: BinaryIO) -> Iterator[Batch]:
        """Yields the lines of the input; any of them may be answered by another process."""
        return read_batches(stream, self.max_line)

    def decide(self, batch: Batch) -> Answers:
        """Returns the lines with their answers, one for each that is not blank."""
        started = time.process_time()
        self._bad, self._dead, self._counts = [], [], Counter()
        texts = []
        for self._number, line in enumerate(batch.lines, batch.first):
            texts.append(self._line(line))
        cpu_s = time.process_time() - started
        return Answers(b"".join(texts), self._counts, self._bad, batch.size, cpu_s, b"".join(self._dead))

    @abstractmethod
    def _line(self, line: bytes) -> bytes:
        """Returns the answer to a line, with a line end; nothing for a blank one."""

    def _without_answer(self, line: bytes, shown: dict[str, Any], error: BadLineError) -> bytes:
        """Counts a line without an answer, and returns what is written for it."""
        self._counts["error", error.why] += 1
        if len(self._bad) < REPORTED:
            self._bad.append((self._number, error.sentence))
        if self._apart:
            self._dead.append(dead_letter(self._number, error.sentence, line))
            return b""
        return json.dumps({**shown, "error": error.sentence}).encode() + b"\n"


def dead_letter(number: int, why: str, line: bytes) -> bytes:
    """Returns a line without an answer as it is kept apart: JSON, with a line end."""
    text = line[:_KEPT_APART].decode(errors="backslashreplace")
    return json.dumps({"line": number, "error": why, "input": text}).encode() + b"\n"


def shown_line(line: bytes) -> dict[str, Any]:
    """Returns what is written among the answers for a line that holds no record, without the fault."""
    return {"input": line[:_ECHOED].decode(errors="replace")}


class JsonLines(BulkLines):
    """Answers lines of JSON. A subclass answers one record.

    Attributes:
        added: the fields that an answer may add; those of the same name in the input are left out.
    """

    added: ClassVar[frozenset[str]]

    @abstractmethod
    def answer(self, record: dict[str, Any]) -> tuple[tuple[str, str], str]:
        """Returns two words that name the result, for counting, and the fields to add: JSON after its `{`, with a line end.

        Raises:
            BadLineError: there is no answer to this record.
        """

    def _line(self, line: bytes) -> bytes:
        line = line.strip()
        if not line:
            return b""
        if len(line) > self.max_line:
            return self._without_answer(line, shown_line(line), BadLineError("line too long"))
        line = line.removeprefix(BOM_UTF8)
        try:
            record = _read_json(line.decode())
        except (ValueError, RecursionError):
            return self._without_answer(line, {"input": line.decode(errors="replace")}, BadLineError("not JSON"))
        if not isinstance(record, dict):
            return self._without_answer(line, {"input": record}, BadLineError("not an object"))
        try:
            counted, added = self.answer(record)
        except BadLineError as error:
            return self._without_answer(line, self._kept(record), error)
        self._counts[counted] += 1
        if not self.added.isdisjoint(record):
            line = json.dumps(self._kept(record)).encode()
        comma = b", " if record and line != b"{}" else b""
        return b"%b%b%b" % (line[:-1], comma, added.encode())

    def _kept(self, record: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in record.items() if name not in self.added}

"""Answers to Kafka messages: the records with their verdicts, dead letters and counts, as messages to be sent."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import numpy as np

from gatewayfilter.scaleout.stream.batch import VERDICT, decide_batch
from gatewayfilter.scaleout.stream.counts import count_messages
from gatewayfilter.scaleout.stream.worker.splicing import Letter, Spliced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from gatewayfilter.model import Verdict
    from gatewayfilter.scaleout.stream.batch import Decided
    from gatewayfilter.scaleout.stream.rule_set import RuleSet
    from gatewayfilter.scaleout.stream.traffic.lines import LineReader, ReadLines

_ECHOED: Final = 100_000
"""Bytes of a message that a dead letter repeats."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where messages stand: what their answers are known by.

    Attributes:
        partitions: topic and number of each message's partition.
        offsets: of the messages.
    """

    partitions: list[tuple[str, int]]
    offsets: list[int]

    def part(self, begin: int, end: int) -> Places:
        """Returns the places of some of the messages."""
        return Places(self.partitions[begin:end], self.offsets[begin:end])

    def prefixes(self) -> list[bytes]:
        """Returns the begin of the key of each message's answer: a digest of topic and partition."""
        known = {partition: _digest(*partition) for partition in set(self.partitions)}
        return [known[partition] for partition in self.partitions]

    def key(self, row: int) -> bytes:
        """Returns the key of a message's answer, equal each time: the prefix and the offset."""
        return b"%b%016x" % (_digest(*self.partitions[row]), self.offsets[row])


@lru_cache(maxsize=4_096)
def _digest(topic: str, partition: int) -> bytes:
    return blake2b(f"{topic}/{partition}".encode(), digest_size=8).hexdigest().encode()


@dataclass(slots=True)
class Answers:
    """What a batch gives.

    Attributes:
        decided: the records with their verdicts, to be made into messages.
        dead: messages with key and value: what held no request, with the reason.
        counts: likewise, one for each window.
        records: how many were decided; `blocked` of them.
    """

    decided: list[Spliced] = field(default_factory=list)
    dead: list[Letter] = field(default_factory=list)
    counts: list[Letter] = field(default_factory=list)
    records: int = 0
    blocked: int = 0

    def add(self, other: Answers) -> None:
        """Takes in the answers to the messages behind."""
        self.decided += other.decided
        self.dead += other.dead
        self.counts += other.counts
        self.records += other.records
        self.blocked += other.blocked


@dataclass(frozen=True, slots=True)
class Answering:
    """How messages are answered.

    Attributes:
        reader: reads the values of messages.
        splices: values are JSON objects, to which verdicts are added as text.
        blocked_only: only blocked records are answered; all are counted.
        window_s: length of a window of counts, 0 for none.
        together: records of one message of answers, as lines.
    """

    reader: LineReader
    splices: bool = True
    blocked_only: bool = False
    window_s: int = 60
    together: int = 1

    def answer(self, values: Sequence[bytes], places: Places, rules: RuleSet, now: float) -> Answers:
        """Returns the answers to messages. A message that makes deciding fail becomes a dead letter; the others are answered.

        Args:
            values: of the messages.
            places: of the messages.
            rules: decide all of them.
            now: Unix seconds, for counting records without a time.
        """
        answers = Answers()
        for found in divided(lambda some, where: self._answer(some, where, rules, now), _refused, values, places):
            answers.add(found)
        return answers

    def _answer(self, values: Sequence[bytes], places: Places, rules: RuleSet, now: float) -> Answers:
        read = self.reader.read(values)
        answers = Answers(dead=[dead_letter(values[row], places, row, why) for row, why in read.bad])
        if not read.batch.num_rows:
            return answers
        decided = decide_batch(read.batch, rules)
        known = len(decided.verdicts)
        faulty = np.flatnonzero(decided.numbers >= known).tolist()
        for row in faulty:
            place = read.rows[row]
            answers.dead.append(dead_letter(values[place], places, place, decided.faults[decided.numbers[row] - known]))
        answers.records = read.batch.num_rows - len(faulty)
        is_blocked = decided.blocked
        answers.blocked = int(is_blocked.sum())
        wanted = np.flatnonzero(is_blocked if self.blocked_only else decided.numbers < known)
        answers.decided.append(self.letters(values, places, read, wanted, decided, rules.version))
        if self.window_s and answers.records:
            for start, text in count_messages(read.batch, decided, self.window_s, now, rules.version):
                answers.counts.append({"key": b"%b/%d" % (places.key(0), start), "value": text})
        return answers

    def letters(
        self, values: Sequence[bytes], places: Places, read: ReadLines, wanted: NDArray[np.int64], decided: Decided, version: str
    ) -> Spliced:
        """Returns the answers to wanted rows: the record as it came, or its fields, with the verdict behind.

        Args:
            values: of the messages.
            places: of the messages.
            read: the records of the messages.
            wanted: rows of records that have a verdict.
            decided: the verdicts.
            version: of the rules.
        """
        fragments, numbers = [_fragment(verdict, version) for verdict in decided.verdicts], decided.numbers
        # Rows ascend: as many as there are messages are all of them, in their order.
        rows = wanted if len(read.rows) == len(values) else np.asarray(read.rows, np.int64)[wanted]
        known = read.braces[rows] if self.splices and read.braces is not None else np.full(len(rows), -1, np.int32)
        every = len(rows) == len(values)
        at, braces = rows.tolist(), known.tolist()
        texts = list(values) if every else [values[row] for row in at]
        for number in np.flatnonzero(known == -1).tolist():
            if self.splices:
                record = json.loads(texts[number].decode("utf-8-sig"))
            else:
                record = read.batch.slice(int(wanted[number]), 1).to_pylist()[0]
            kept = {name: value for name, value in record.items() if name not in VERDICT.names and value is not None}
            texts[number] = json.dumps(kept).encode()
            braces[number] = len(texts[number]) - 1
        prefixes, offsets = places.prefixes(), places.offsets
        behind = [fragments[number] for number in numbers[wanted].tolist()]
        keys: tuple[list[bytes], list[int]] = (
            (prefixes, offsets) if every else ([prefixes[row] for row in at], [offsets[row] for row in at])
        )
        return Spliced(texts, braces, behind, *keys, self.together)


@lru_cache(maxsize=4_096)
def _fragment(verdict: Verdict, version: str) -> bytes:
    """Returns what a verdict adds to an object that has members: JSON behind them."""
    added = {
        "action": verdict.action,
        "reason": verdict.reason,
        "rule": verdict.rule,
        "source_list": verdict.source_list,
        "category": verdict.category,
        "rules_version": version,
    }
    return b", " + json.dumps(added).encode()[1:]


def divided[T](
    answer: Callable[[Sequence[bytes], Places], T],
    refused: Callable[[bytes, Places, str], T],
    values: Sequence[bytes],
    places: Places,
) -> Iterator[T]:
    """Yields the answers to messages, in parts. What makes deciding fail is found by halving, and the others are answered.

    Args:
        answer: answers messages; when it fails, it has no effect.
        refused: answers a message that cannot be decided, with the reason.
        values: of the messages.
        places: of the messages.
    """
    try:
        yield answer(values, places)
    except Exception as error:  # noqa: BLE001  # a poison message must not stop the stream
        if len(values) == 1:
            yield refused(values[0], places, f"internal error: {type(error).__name__}: {error}"[:300])
            return
    else:
        return
    half = len(values) // 2
    yield from divided(answer, refused, values[:half], places.part(0, half))
    yield from divided(answer, refused, values[half:], places.part(half, len(values)))


def _refused(value: bytes, places: Places, why: str) -> Answers:
    return Answers(dead=[dead_letter(value, places, 0, why)])


def dead_letter(value: bytes, places: Places, row: int, why: str) -> Letter:
    """Returns a message that repeats one without an answer, with its place and the reason."""
    topic, partition = places.partitions[row]
    letter = {
        "error": why,
        "topic": topic,
        "partition": partition,
        "offset": places.offsets[row],
        "input": value[:_ECHOED].decode(errors="backslashreplace"),
    }
    return {"key": places.key(row), "value": json.dumps(letter).encode()}

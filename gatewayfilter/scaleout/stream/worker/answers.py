"""Answers to Kafka messages: the records with their verdicts, dead letters and counts, as messages to be sent."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from gatewayfilter.scaleout.stream.batch import VERDICT, Decided, decide_batch
from gatewayfilter.scaleout.stream.counts import count_messages
from gatewayfilter.scaleout.stream.worker.splicing import splice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gatewayfilter.scaleout.stream.rule_set import RuleSet
    from gatewayfilter.scaleout.stream.traffic.lines import LineReader, ReadLines

_ECHOED: Final = 100_000
"""Bytes of a message that a dead letter repeats."""


class Place(NamedTuple):
    """Where a message stands: what its answer is known by."""

    topic: str
    partition: int
    offset: int

    def key(self) -> str:
        """Returns a digest of topic and partition, and the offset: equal for every answer to the same message."""
        return f"{_digest(self.topic, self.partition)}{self.offset:016x}"


@lru_cache(maxsize=4_096)
def _digest(topic: str, partition: int) -> str:
    return blake2b(f"{topic}/{partition}".encode(), digest_size=8).hexdigest()


@dataclass(slots=True)
class Answers:
    """What a batch gives.

    Attributes:
        decided: messages with key and value: the records with their verdicts.
        dead: likewise: what held no request, with the reason.
        counts: likewise, one for each window.
        records: how many were decided; `blocked` of them.
    """

    decided: list[dict[str, Any]] = field(default_factory=list)
    dead: list[dict[str, Any]] = field(default_factory=list)
    counts: list[dict[str, Any]] = field(default_factory=list)
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
    """

    reader: LineReader
    splices: bool = True
    blocked_only: bool = False
    window_s: int = 60

    def answer(self, values: Sequence[bytes], places: Sequence[Place], rules: RuleSet, now: float) -> Answers:
        """Returns the answers to messages. A message that makes deciding fail becomes a dead letter; the others are answered.

        Args:
            values: of the messages.
            places: of the messages.
            rules: decide all of them.
            now: Unix seconds, for counting records without a time.
        """
        try:
            return self._answer(values, places, rules, now)
        except Exception as error:  # noqa: BLE001  # a poison message must not stop the stream: it is found by halving
            if len(values) == 1:
                return Answers(dead=[_dead(values[0], places[0], f"internal error: {type(error).__name__}: {error}"[:300])])
        half = len(values) // 2
        answers = self.answer(values[:half], places[:half], rules, now)
        answers.add(self.answer(values[half:], places[half:], rules, now))
        return answers

    def _answer(self, values: Sequence[bytes], places: Sequence[Place], rules: RuleSet, now: float) -> Answers:
        read = self.reader.read(values)
        answers = Answers(dead=[_dead(values[row], places[row], why) for row, why in read.bad])
        if not read.batch.num_rows:
            return answers
        decided = decide_batch(read.batch, rules)
        known = len(decided.verdicts)
        faulty = np.flatnonzero(decided.numbers >= known).tolist()
        for row in faulty:
            place = read.rows[row]
            answers.dead.append(_dead(values[place], places[place], decided.faults[decided.numbers[row] - known]))
        answers.records = read.batch.num_rows - len(faulty)
        is_blocked = decided.blocked
        answers.blocked = int(is_blocked.sum())
        wanted = np.flatnonzero(is_blocked if self.blocked_only else decided.numbers < known).tolist()
        texts = self._texts(values, read, decided, rules.version, wanted)
        rows = read.rows
        answers.decided = [{"key": places[rows[row]].key(), "value": text} for row, text in zip(wanted, texts, strict=True)]
        if self.window_s and answers.records:
            first = places[0]
            for start, text in count_messages(read.batch, decided, self.window_s, now, rules.version):
                answers.counts.append({"key": f"{first.key()}/{start}", "value": text})
        return answers

    def _texts(self, values: Sequence[bytes], read: ReadLines, decided: Decided, version: str, wanted: list[int]) -> list[bytes]:
        """Returns the values of answers: the record as it came, or its fields, with the verdict behind."""
        fragments = _fragments(decided, version)
        numbers = decided.numbers.tolist()
        if self.splices:
            rows = read.rows
            by_value = numbers
            if len(rows) != len(values):
                by_value = [0] * len(values)
                for row, number in zip(rows, numbers, strict=True):
                    by_value[row] = number
            found = splice(values, [rows[row] for row in wanted], by_value, fragments)
            if found is not None:
                return found
        texts = []
        fields = None if self.splices else read.batch.to_pylist()
        for row in wanted:
            record = json.loads(values[read.rows[row]].decode("utf-8-sig")) if fields is None else fields[row]
            kept = {name: value for name, value in record.items() if name not in VERDICT.names and value is not None}
            texts.append(json.dumps(kept).encode()[:-1] + fragments[numbers[row]])
        return texts


def _fragments(decided: Decided, version: str) -> list[bytes]:
    """Returns what each verdict adds to an object that has members: JSON behind them."""
    return [
        b", "
        + json.dumps(
            {
                "action": verdict.action,
                "reason": verdict.reason,
                "rule": verdict.rule,
                "source_list": verdict.source_list,
                "category": verdict.category,
                "rules_version": version,
            }
        ).encode()[1:]
        for verdict in decided.verdicts
    ]


def _dead(value: bytes, place: Place, why: str) -> dict[str, Any]:
    letter = {
        "error": why,
        "topic": place.topic,
        "partition": place.partition,
        "offset": place.offset,
        "input": value[:_ECHOED].decode(errors="backslashreplace"),
    }
    return {"key": place.key(), "value": json.dumps(letter).encode()}

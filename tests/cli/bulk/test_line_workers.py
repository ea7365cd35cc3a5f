"""Bounded memory: how far the reader may be ahead of the writer."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from gatewayfilter.cli.bulk import line_workers
from gatewayfilter.cli.bulk.json_lines import Batch, JsonLines
from gatewayfilter.cli.bulk.line_workers import answer_on_all_cores
from gatewayfilter.errors import GatewayFilterError


class _Plain(JsonLines):
    added = frozenset({"ok"})

    def answer(self, record: dict[str, Any]) -> tuple[tuple[str, str], str]:
        if "end" in record:
            os._exit(1)
        return ("ok", ""), '"ok": 1}\n'


@dataclass(frozen=True)
class _Opener:
    preload: ClassVar[tuple[str, ...]] = ()

    def open(self) -> JsonLines:
        return _Plain()


def test_input_on_its_way_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_workers, "MOST_BYTES", 3_000)
    read: list[int] = []

    def batches() -> Iterator[Batch]:
        for number in range(1, 41):
            size = 10_000 if number in {1, 20} else 1_000  # two are larger than the bound, and admitted alone
            read.append(size)
            yield Batch(number, [b'{"n": %d}' % number], size)

    written: list[int] = []
    texts = []
    for answers in answer_on_all_cores(_Opener(), batches(), 2, "test"):
        assert sum(read) - sum(written) <= 3_000 + 10_000 + 1_000  # the one that is read and waits is not on its way
        written.append(answers.size)
        texts.append(answers.text)
    assert texts == [b'{"n": %d, "ok": 1}\n' % number for number in range(1, 41)]


def test_a_worker_that_ends_names_the_command() -> None:
    batches = iter([Batch(1, [b'{"n": 1}'], 8), Batch(2, [b'{"end": 1}'], 8)])
    answers = answer_on_all_cores(_Opener(), batches, 1, "classify")
    assert next(answers).text == b'{"n": 1, "ok": 1}\n'
    with pytest.raises(GatewayFilterError, match="a worker process of classify ended unexpectedly"):
        list(answers)

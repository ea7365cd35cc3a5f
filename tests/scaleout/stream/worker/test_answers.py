"""Answers to messages: verdicts are added to the text, dead letters name the reason, counts add up."""

import json
from typing import Any

import numpy as np

from gatewayfilter.engine.batches.batch_decider import UNDECIDED, BatchDecider, RequestColumns
from gatewayfilter.engine.batches.verdict_table import VerdictTable
from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot.reader import Snapshot, SnapshotBuilder
from gatewayfilter.model import Request, Source, Verdict
from gatewayfilter.scaleout.stream.deciding import RecordDecider
from gatewayfilter.scaleout.stream.rule_set import RuleSet
from gatewayfilter.scaleout.stream.traffic.formats import TrafficFormat, reader_of
from gatewayfilter.scaleout.stream.worker.answers import Answering, Answers, Places
from gatewayfilter.scaleout.stream.worker.splicing import Letter
from tests.case_tables import all_cases


def _rules() -> RuleSet:
    builder = SnapshotBuilder(created_at=0.0)
    builder.add_keys(builder.add_source(Source("black", category="gambling")), [".bad.test"])
    return RuleSet.of_engine(FilterEngine(Snapshot.from_bytes(builder.build())), "v7")


RULES = _rules()
ENGINE = FilterEngine(Snapshot.from_bytes(SnapshotBuilder(created_at=0.0).build()))
PLACES = Places([("in", 1)] * 100, list(range(100)))


def _answer(values: list[bytes], rules: RuleSet = RULES, **options: Any) -> Answers:
    return Answering(**{"reader": reader_of(TrafficFormat.JSON), **options}).answer(
        values, PLACES.part(0, len(values)), rules, 130.0
    )


def _decided(answers: Answers) -> list[Letter]:
    return [letter for spliced in answers.decided for run in spliced.runs() for letter in run]


@all_cases(
    "value",
    [
        b'{"url": "http://bad.test/x", "id": 7, "nested": {"a": "}"}} \n',
        b'{"url": "http://bad.test/x", "action": "allow", "id": 7}',
        b'{"url": "http://bad.test/x", "\\u0061ction": "allow", "id": 7}',
        b'\xef\xbb\xbf{"url": "http://bad.test/x", "id": 7}',
        b'{"url": "http://bad.test/x", "id": 7, "user": "\xc3\xa9", "escaped": "\\"}"}',
    ],
)
def test_a_verdict_is_added_once(value: bytes) -> None:
    (answer,) = _decided(_answer([value]))
    pairs = json.loads(answer["value"], object_pairs_hook=list)
    assert len(dict(pairs)) == len(pairs)
    found = dict(pairs)
    assert (found["action"], found["category"], found["rules_version"], found["id"]) == ("block", "gambling", "v7", 7)
    assert answer["key"] == PLACES.key(0)


def test_dead_letters_and_counts() -> None:
    values = [
        b'{"url": "http://bad.test/", "client": "192.0.2.9", "time": 61}',
        b"{",
        b'{"url": "ftp://x/"}',
        b'{"url": "http://a/"}',
    ]
    answers = _answer(values)
    assert (answers.records, answers.blocked, len(_decided(answers))) == (2, 1, 2)
    assert [json.loads(letter["value"])["offset"] for letter in answers.dead] == [1, 2]
    first, second = (json.loads(count["value"]) for count in answers.counts)
    assert (first["window"], second["window"]) == (60, 120)
    assert first["counts"]["network"] == {"192.0.2.0/24": [1, 1]}
    assert first["counts"]["rule"] == {"black: .bad.test": [1, 1]}
    assert second["counts"]["host"] == {"a": [1, 0]}
    assert len(_decided(_answer(values, blocked_only=True))) == 1


def test_answers_of_several_records_are_those_of_single_ones() -> None:
    values = [b'{"url": "http://h%d.test/"}' % number for number in range(5)] + [
        b'{"url":\n"http://bad.test/", "user": "\xc3\xa9"}'
    ]
    single, several = _decided(_answer(values)), _decided(_answer(values, together=4))
    lines = [json.loads(line) for letter in several for line in letter["value"].splitlines()]
    assert lines == [json.loads(letter["value"]) for letter in single]
    assert [letter["key"] for letter in several] == [PLACES.key(0), PLACES.key(4)]


class _Undecided(BatchDecider):
    """Leaves all to the engine."""

    def __init__(self) -> None:
        super().__init__(ENGINE)

    def decide(self, batch: RequestColumns, verdicts: VerdictTable) -> Any:  # the signature
        return np.full(len(batch.urls.heads), UNDECIDED, np.int32)


_UNDECIDED = _Undecided()


class _Faulty(RecordDecider):
    """Fails on one record."""

    def __init__(self) -> None:
        self._rules = RULES.decider

    def verdict(self, url: str, source: object = None, kind: object = None, method: str = "GET", client: str = "") -> Verdict:
        if "poison" in url:
            raise RuntimeError("unexpected")
        return self._rules.verdict(url, source, kind, method, client)


def test_a_poison_message_is_found_and_the_others_are_answered() -> None:
    values = [b'{"url": "http://h%d.test/"}' % number for number in range(100)]
    values[37] = b'{"url": "http://poison.test/"}'
    answers = _answer(values, RuleSet("v", _Faulty(), _UNDECIDED))
    assert len(_decided(answers)) == 99
    (letter,) = (json.loads(letter["value"]) for letter in answers.dead)
    assert (letter["offset"], letter["error"]) == (37, "internal error: RuntimeError: unexpected")


def test_other_formats_are_answered_as_json() -> None:
    line = b"1795436341.460 69 127.0.0.1 TCP_MISS/200 300 GET http://bad.test/a.js - HIER_DIRECT/127.0.0.1 text/javascript"
    (answer,) = _decided(_answer([line], reader=reader_of(TrafficFormat.SQUID), splices=False))
    assert json.loads(answer["value"])["action"] == "block"
    assert json.loads(answer["value"])["status"] == 200


def test_the_request_has_all_that_a_record_has() -> None:
    asked: list[Request] = []

    class _Engine:
        def decide(self, request: Request) -> Verdict:
            asked.append(request)
            return FilterEngine.decide(ENGINE, request)

        def explain(self, request: Request) -> Any:
            raise NotImplementedError

    value = b'{"url": "http://a.test/", "source": "http://b.test/", "type": "script", "method": "POST", "client": "192.0.2.1"}'
    _answer([value], RuleSet("v", RecordDecider(_Engine()), _UNDECIDED))
    (request,) = asked
    assert (request.method, request.client, str(request.source), request.resource_type) == (
        "POST",
        "192.0.2.1",
        "http://b.test/",
        "script",
    )

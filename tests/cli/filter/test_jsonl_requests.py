import io
import json
from typing import Any

from gatewayfilter.cli.bulk.json_lines import MAX_LINE, REPORTED, Answers, Batch, read_batches
from gatewayfilter.cli.filter.jsonl_requests import RequestLines
from gatewayfilter.model import Action, Explanation, Reason, Request, ResourceType, Verdict
from gatewayfilter.scaleout.stream.deciding import RecordDecider
from tests.case_tables import all_cases


class _Engine:
    """Blocks hosts that begin with `bad` and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Request] = []

    def decide(self, request: Request) -> Verdict:
        self.asked.append(request)
        if request.url.host.startswith("bad"):
            return Verdict(Action.BLOCK, Reason.BLACKLIST, 'evil "list"', "é", 3, "ads")
        return Verdict(Action.ALLOW, Reason.UNKNOWN, unknown=True)

    def explain(self, request: Request) -> Explanation:
        raise NotImplementedError


BLOCKED = {"action": "block", "reason": "blacklist", "rule": "é", "source_list": 'evil "list"', "category": "ads"}
ALLOWED = {"action": "allow", "reason": "unknown", "rule": "", "source_list": "", "category": ""}


def _decide(line: str | bytes) -> tuple[list[Any], _Engine, Answers]:
    engine = _Engine()
    answers = RequestLines(RecordDecider(engine)).decide(Batch(1, [line.encode() if isinstance(line, str) else line], 1))
    return [json.loads(text) for text in answers.text.decode().splitlines()], engine, answers


@all_cases(
    ("record", "added"),
    [
        ({"url": "http://bad.test/"}, BLOCKED),
        ({"url": "http://good.test/", "source": "", "type": "script"}, ALLOWED),
        ({"id": 7, "url": "http://bad.test/", "nested": {"a": [1, "}"]}, "note": "例"}, BLOCKED),
        ({"url": "http://good.test/", "source": None, "type": None}, ALLOWED),
        ({"url": "http://good.test/", "source": "about:blank"}, ALLOWED),
    ],
)
def test_the_verdict_is_added_and_the_rest_stays(record: dict[str, Any], added: dict[str, str]) -> None:
    (answer,), _, lines = _decide(json.dumps(record, ensure_ascii=False))
    assert answer == {**record, **added}
    assert lines.counts == {(added["action"], added["reason"]): 1}


def test_an_older_verdict_is_replaced() -> None:
    (answer,), _, _ = _decide('{"action": "allow", "url": "http://bad.test/", "error": "x", "x": 1}')
    assert answer == {"url": "http://bad.test/", "x": 1, **BLOCKED}


@all_cases(
    ("name", "kind"),
    [
        ("script", ResourceType.SCRIPT),
        ("SCRIPT", ResourceType.SCRIPT),
        ("xhr", ResourceType.XMLHTTPREQUEST),
        ("main_frame", ResourceType.DOCUMENT),
        ("sub_frame", ResourceType.SUBDOCUMENT),
        ("hologram", ResourceType.OTHER),
        (None, ResourceType.OTHER),
        (7, ResourceType.OTHER),
    ],
)
def test_types_in_use_are_understood(name: object, kind: ResourceType) -> None:
    _, engine, _ = _decide(json.dumps({"url": "http://a.test/", "type": name}))
    assert engine.asked[0].resource_type is kind


def test_the_source_reaches_the_engine() -> None:
    _, engine, _ = _decide('{"url": "http://a.test/", "source": "https://News.test/x#y"}')
    assert str(engine.asked[0].source) == "https://news.test/x"


@all_cases(
    ("line", "kept"),
    [
        ("not json", {"input": "not json"}),
        (b"\xff\xfe", {"input": "\ufffd\ufffd"}),
        ("[1]", {"input": [1]}),
        ("7", {"input": 7}),
        ("{}", {}),
        ('{"url": 7, "x": 1}', {"url": 7, "x": 1}),
        ('{"url": "nonsense"}', {"url": "nonsense"}),
        ('{"url": "ftp://a.test/"}', {"url": "ftp://a.test/"}),
        ('{"url": "http://", "action": "x"}', {"url": "http://"}),
        ('{"url": "\\ud800"}', {"url": "\ud800"}),
        ("[" * 100_000, None),
    ],
)
def test_a_line_without_a_request_says_so_and_stops_nothing(line: str | bytes, kept: dict[str, Any] | None) -> None:
    (answer,), engine, lines = _decide(line)
    assert answer.pop("error")
    assert kept is None or answer == kept
    assert not engine.asked
    assert lines.counts.total() == 1


def test_blank_lines_are_passed_over() -> None:
    answers = RequestLines(RecordDecider(_Engine())).decide(Batch(1, [b"", b"  ", b"\r"], 5))
    assert (answers.text, answers.counts, answers.bad, answers.size) == (b"", {}, [], 5)


def test_bad_lines_are_numbered_up_to_a_limit_and_all_counted() -> None:
    lines = RequestLines(RecordDecider(_Engine()))
    batch = [b"", b'{"url": "http://good.test/"}', b"nonsense", b'{"url": 1}', b'{"url": "x"}'] + [b"{"] * 50
    answers = lines.decide(Batch(11, batch, 1))
    assert answers.bad[:3] == [(13, "not JSON"), (14, "no url"), (15, "not a URL: 'x'")]
    assert len(answers.bad) == REPORTED
    assert answers.counts == {
        ("allow", "unknown"): 1,
        ("error", "not JSON"): 51,
        ("error", "no url"): 1,
        ("error", "not a URL"): 1,
    }
    assert lines.decide(Batch(100, [b"{"], 1)).bad == [(100, "not JSON")]


def test_a_line_without_end_takes_no_more_memory_than_a_long_one() -> None:
    good = b'{"url": "http://good.test/"}'
    endless = io.BufferedReader(_Endless(b'{"url": "http://bad.test/' + b"x" * (5 * MAX_LINE) + b'"}\n' + good))
    batches = list(read_batches(endless))
    assert max(len(line) for batch in batches for line in batch.lines) < 2 * MAX_LINE
    assert [(batch.first + number) for batch in batches for number, line in enumerate(batch.lines) if line == good] == [2]
    lines = RequestLines(RecordDecider(_Engine()))
    counts = [lines.decide(batch).counts for batch in batches]
    assert sum(count["error", "line too long"] for count in counts) == 1
    assert sum(count.total() for count in counts) == 2


class _Endless(io.RawIOBase):
    """Hands out bytes in pieces, as a pipe does."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._data[self._position : self._position + min(len(buffer), 10_000)]
        buffer[: len(piece)] = piece
        self._position += len(piece)
        return len(piece)

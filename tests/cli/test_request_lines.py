import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayfilter.cli.request_lines import RequestLines, read_batches
from gatewayfilter.model import Action, Explanation, Reason, Request, ResourceType, Verdict


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


def _decide(line: str | bytes) -> tuple[list[Any], _Engine, RequestLines]:
    engine = _Engine()
    lines = RequestLines(engine)
    out = lines.decide([line.encode() if isinstance(line, str) else line])
    return [json.loads(text) for text in out.decode().splitlines()], engine, lines


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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
    assert RequestLines(_Engine()).decide([b"", b"  ", b"\r"]) == b""


@given(st.lists(st.binary(max_size=30).map(lambda data: data.replace(b"\n", b"")), max_size=20), st.booleans())
def test_batches_are_the_lines(lines: list[bytes], ends: bool) -> None:  # noqa: FBT001  hypothesis gives it
    data = b"\n".join(lines) + (b"\n" if ends else b"")
    read = [line for batch in read_batches(io.BufferedReader(io.BytesIO(data), 7)) for line in batch]
    assert [line for line in read if line] == [line for line in data.split(b"\n") if line]

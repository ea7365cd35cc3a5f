"""Bounds of what is read of a page, at their edges: forms, tags, the scores of texts, and files that were read before."""

import gc
import json
import os
import signal
import struct
import sys
from collections.abc import Callable
from io import BytesIO
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.documents import main_text, pdf_text, sandbox, sandbox_child
from gatewayfilter.documents.encoding import charset_score
from gatewayfilter.documents.encoding.charset_score import plausibility
from gatewayfilter.documents.html import forms, tags
from gatewayfilter.documents.html.forms import Credential, likely_credentials, read_forms
from gatewayfilter.documents.html.tags import is_closed, with_few_attributes, without_zeros
from gatewayfilter.documents.main_text import is_tame
from gatewayfilter.documents.sandbox import FRAME, Sandbox, SandboxError
from tests.case_tables import all_cases

PASSWORD = "<input type=password>"


@pytest.mark.parametrize(("few", "more"), [("form", "targets"), ("references", "references"), ("declared", "declared")])
def test_lists_of_a_page_are_bounded(monkeypatch: pytest.MonkeyPatch, few: str, more: str) -> None:
    monkeypatch.setattr(forms, "MAX_REFERENCES", 3)
    page = {
        "form": f"<form action=/x>{PASSWORD}</form>",
        "references": "<a href=//a.example/></a>",
        "declared": "<link rel=canonical href=https://c.example/>",
    }[few]
    for count, kept in ((2, 2), (3, 3), (4, 3)):
        found = read_forms(page * count + ("" if few == "form" else PASSWORD))
        assert found is not None
        assert len(getattr(found, more)) == kept


def test_what_declares_and_names_is_bounded_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "MAX_REFERENCES", 2)
    page = "<meta name=application-name content=n><meta property=og:url content=u>" * 3 + "<form action=/a></form>" * 3 + PASSWORD
    found = read_forms(page)
    assert found is not None
    assert (found.names, found.declared, found.targets) == (("n", "n"), ("u", "u"), ("/a", "/a"))


def test_fields_beyond_the_bound_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "MAX_FIELDS", 3)
    for before, found in ((2, {Credential.PASSWORD}), (3, set())):
        forms_found = read_forms("<input name=q>" * before + PASSWORD)
        assert (forms_found.credentials if forms_found else set()) == found
    assert likely_credentials("<input name=q>" * 3 + PASSWORD) == {Credential.PASSWORD}, "a field more: it finds as much or more"
    assert likely_credentials("<input name=q>" * 4 + PASSWORD) == set()


def test_a_long_page_is_not_kept_with_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "MOST_KEPT", 100)
    for length, is_kept in ((100, True), (101, False)):
        page = PASSWORD.ljust(length)
        assert likely_credentials(page) == {Credential.PASSWORD}
        assert (forms._asked[0] is page) is is_kept


def test_fields_that_hold_addresses_refer_to_them() -> None:
    page = "<input type=hidden value=https://a.example/><input type=hidden value=x><a href='/b'></a><a href=' //c.example/'></a>"
    found = read_forms(page + PASSWORD)
    assert found is not None
    assert found.references == ("https://a.example/", "//c.example/")


@all_cases(
    ("attributes", "closed"),
    [
        ("", False),
        (" a", False),
        ("/", True),
        (" a=b /", True),
        (" a=b/", False),
        (' a="b"/', True),
        (" a=/", False),
        (" a/", True),
    ],
)
def test_a_slash_closes_a_tag_unless_it_belongs_to_a_value(attributes: str, *, closed: bool) -> None:
    assert is_closed(attributes) is closed


ZERO = "\ufffd"


@all_cases(
    ("html", "seen"),
    [
        ("a\0b<p>c\0d", "ab<p>cd"),
        ("<scr\0ipt>x", f"<scr{ZERO}ipt>x"),
        ("<\0p>x", f"<{ZERO}p>x"),
        ("<p t\0itle='\0'>x", f"<p t{ZERO}itle='{ZERO}'>x"),
        ("<script>a\0b</script>", f"<script>a{ZERO}b</script>"),
        ("<SCRIPT>a\0b</SCRIPT>", f"<SCRIPT>a{ZERO}b</SCRIPT>"),
        ("<textarea>a\0b</text\0area>\0</textarea>", f"<textarea>ab</text{ZERO}area></textarea>"),
        ("<noscript>a\0<s\0>b\0</noscript>", f"<noscript>a<s{ZERO}>b</noscript>"),
        ("plain", "plain"),
    ],
)
def test_zeros_are_read_as_browsers_read_them(html: str, seen: str) -> None:
    assert without_zeros(html) == seen


def test_a_tag_keeps_its_first_attributes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tags, "MOST_ATTRIBUTES", 3)
    assert with_few_attributes("<b a b>") == "<b a b>"
    assert with_few_attributes("<i a b c>x</i><b a=1 b='2' c d e>y</b>") == "<i a b c>x</i><b a=1 b='2' c>y</b>"
    assert with_few_attributes("<img alt=abcdefghi c>") == "<img alt=abcdefghi c>", "long, and few"


_WORTH = (
    ("", 0.0), ("ascii", 0.0), ("的", 1.5), ("龘", -0.1), ("あ", 1.0), ("이", 1.5), ("쟒", 0.2), ("。", 0.3), ("…", 0.3),
    ("д", 0.5), ("ад", 0.75), ("aд", 0.5), ("Д", 0.3), ("aД", -0.8), ("é", 1.0), ("aé", 1.0), ("éé", 0.15), ("É", 0.2),
    (">é", 1.0), ("1é", -0.7), ("\ufffd", -2.0), ("\x80", -0.5), ("\u4dff", -0.5), ("\u9fff", -0.1), ("\u3040", 1.0),
    ("\u303f", -0.5), ("\u30ff", 1.0), ("\u3100", -0.5), ("\xc0", 0.2), ("\xbf", -0.5), ("\u017f", 1.0), ("\u0180", -0.5),
    ("\xd7", -0.5), ("\u0400", 0.3), ("\u04ff", 0.5), ("\u03ff", -0.5), ("\u0500", -0.5), ("\uac00", 1.5), ("\ud7a3", 0.2),
)  # fmt: skip


def test_what_a_character_is_worth() -> None:
    for text, worth in _WORTH:
        assert plausibility(text) == pytest.approx(worth), text


def test_the_score_is_of_the_first_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charset_score, "_SAMPLE", 4)
    assert plausibility("aa的的的的") == pytest.approx(1.5)
    assert plausibility("的的的龘龘的") == pytest.approx(4.4 / 4)
    assert plausibility("あ", kana=0.25) == pytest.approx(0.25)


def test_pages_that_no_parser_of_trees_should_see(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main_text, "MAX_DEPTH", 3)
    for html, tame in (
        ("<b><b><b>", True),
        ("<b><b><b><b>", False),
        ("<b></b>" * 9, True),
        ("<b></i>" * 4, False),  # an end tag of another element closes nothing
        ("<p>" * 9, True),  # the next one ends it
        ("<b><p></b>" * 3, True),
        ("<br>" * 9, True),
        ("<p><p><b><b><b>", False),  # all that follow count
        ("<i><b></b><i><i><i>", False),
        ("<i></b></i>" * 9, True),
        ("<li><b><p></li>" * 2, False),
        ("</b>" * 9, True),
        ("</p><b>", True),
    ):
        assert is_tame(html) is tame, html


def test_tags_of_many_attributes_are_for_no_parser_of_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main_text, "MAX_ATTRIBUTES", 2)
    monkeypatch.setattr(main_text, "_SEPARATED_TEXT", 6)
    for html, tame in (
        ("<b a b cd>", False), ("<b a b c>", True), ("<b abcdefg h>", True), ("<b aaaaaaa / b/c>", False), ("<b ab cd >", False),
    ):  # fmt: skip
        assert is_tame(html) is tame, html


def test_files_that_were_read_are_remembered_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf_text, "_REMEMBERED", 2)
    reader = pdf_text._Reader()
    asked = list[bytes]()

    def ask(body: bytes) -> tuple[str, str]:
        asked.append(body)
        return "title", body.decode()

    monkeypatch.setattr(reader, "_ask", ask)
    for body in (b"a", b"b", b"a", b"c", b"b", b"c", b"a"):
        assert reader.read(body) == ("title", body.decode())
    assert asked == [b"a", b"b", b"c", b"a"]
    assert len(reader._known) == 2


def test_a_file_that_cannot_be_read_has_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = pdf_text._Reader()

    def refuse(*_: object) -> None:
        raise SandboxError("it took longer")

    monkeypatch.setattr(reader._confined, "ask", refuse)
    assert reader.read(b"slow") == ("", "")
    monkeypatch.setattr(reader._confined, "ask", lambda *_: {"title": "t", "text": 7})
    assert reader.read(b"other") == ("t", "7")


class Streams:
    """The standard streams of a child, as the test fills them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, asked: bytes) -> None:
        self.answers = BytesIO()
        self.done = list[tuple[Any, ...]]()
        limits = SimpleNamespace(
            RLIMIT_AS="as", RLIMIT_CORE="core", RLIMIT_FSIZE="fsize", setrlimit=lambda *found: self.done.append(found)
        )
        alarms = SimpleNamespace(
            SIGINT=signal.SIGINT, SIG_IGN=signal.SIG_IGN, ITIMER_REAL="real",
            signal=lambda *found: self.done.append(found), setitimer=lambda *found: self.done.append(found),
        )  # fmt: skip
        descriptors = SimpleNamespace(
            fdopen=lambda *_: self.answers, dup=lambda number: number, dup2=lambda *found: self.done.append(("dup2", *found))
        )
        inputs = SimpleNamespace(buffer=BytesIO(asked))
        outputs = [SimpleNamespace(fileno=lambda number=number: number) for number in (1, 2)]
        monkeypatch.setattr(sandbox_child, "resource", limits)
        monkeypatch.setattr(sandbox_child, "signal", alarms)
        monkeypatch.setattr(sandbox_child, "os", descriptors)
        monkeypatch.setattr(sandbox_child, "sys", SimpleNamespace(stdin=inputs, stdout=outputs[0], stderr=outputs[1]))

    def answered(self) -> list[Any]:
        found, raw = [], BytesIO(self.answers.getvalue())
        while head := raw.read(FRAME.size):
            length, rest = FRAME.unpack(head)
            assert rest == 0
            found.append(json.loads(raw.read(length)))
        return found


def doubled(question: int, body: bytes) -> dict[str, object]:
    """A job of the test."""
    if question < 0:
        raise ValueError("negative") if body else KeyError
    return {"number": 2 * question, "body": body.decode()}


def asking(question: object, body: bytes) -> bytes:
    content = json.dumps(question).encode()
    return FRAME.pack(len(content), len(body)) + content + body


def test_a_child_works_within_its_limits_until_its_input_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    streams = Streams(monkeypatch, asking(3, b"x") + asking(-1, b"y") + asking(-1, b"") + asking(4, b"") + b"\0\0")
    sandbox_child.main(f"{__name__}:doubled", 2.5, 1 << 30)
    assert streams.answered() == [
        {"done": {"number": 6, "body": "x"}}, {"error": "ValueError: negative"}, {"error": "KeyError"},
        {"done": {"number": 8, "body": ""}},
    ]  # fmt: skip
    assert streams.done == [
        (signal.SIGINT, signal.SIG_IGN), ("as", (1 << 30, 1 << 30)), ("core", (0, 0)), ("fsize", (0, 0)), ("dup2", 2, 1),
        *[("real", 2.5), ("real", 0)] * 4,
    ]  # fmt: skip


@pytest.mark.parametrize(("most_question", "most_body", "answers"), [(1, 3, 1), (0, 3, 0), (1, 2, 0)])
def test_a_child_refuses_more_than_it_may_take(
    monkeypatch: pytest.MonkeyPatch, most_question: int, most_body: int, answers: int
) -> None:
    monkeypatch.setattr(sandbox_child, "_MAX_QUESTION", most_question)
    monkeypatch.setattr(sandbox_child, "_MAX_BODY", most_body)
    streams = Streams(monkeypatch, asking(3, b"abc"))
    sandbox_child.main(f"{__name__}:doubled", 1.0, 1 << 30)
    assert len(streams.answered()) == answers


class Child:
    """A process over pipes of the test, which answers what it was given beforehand."""

    def __init__(self, answer: bytes) -> None:
        reading, self.to_child = os.pipe()
        from_child, writing = os.pipe()
        os.write(writing, answer)
        os.close(writing)
        self.asked = os.fdopen(reading, "rb", 0)
        self.stdin, self.stdout = os.fdopen(self.to_child, "wb", 0), os.fdopen(from_child, "rb", 0)
        self.log = list[str]()

    def poll(self) -> int | None:
        return 1 if "kill" in self.log else None

    def kill(self) -> None:
        self.log.append("kill")
        raise ProcessLookupError

    def wait(self) -> None:
        self.log.append("wait")


@pytest.fixture
def confined(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Sandbox, list[Child]]]:
    """Returns a sandbox whose children answer in turn."""

    def made(*answers: bytes) -> tuple[Sandbox, list[Child]]:
        left, children = list(answers), list[Child]()

        def start(command: list[str], **_: object) -> Child:
            assert command == [sys.executable, "-m", "gatewayfilter.documents.sandbox_child", "a:b", "2.0", str(1 << 30)]
            children.append(Child(left.pop(0)))
            return children[-1]

        monkeypatch.setattr("gatewayfilter.documents.sandbox.subprocess.Popen", start)
        return Sandbox("a:b", 2.0), children

    return made


def framed(answer: object) -> bytes:
    content = json.dumps(answer).encode()
    return FRAME.pack(len(content), 0) + content


def test_a_child_is_kept_and_one_that_ended_replaced(confined: Callable[..., tuple[Sandbox, list[Child]]]) -> None:
    box, children = confined(framed({"done": [1]}) + framed({"error": "x" * 600}), framed({"done": 2}))
    assert box.ask({"q": 1}, b"body") == [1]
    with pytest.raises(SandboxError) as caught:
        box.ask({"q": 2}, b"")
    assert str(caught.value) == "x" * 500
    assert len(children) == 1
    assert children[0].asked.read(100) == asking({"q": 1}, b"body") + asking({"q": 2}, b"")
    with pytest.raises(SandboxError, match="longer than 2 s"):
        box.ask({}, b"")  # no answer: it has ended
    first = children[0]
    assert (first.log, first.stdin.closed, first.stdout.closed) == (["kill", "wait"], True, True)
    assert box.ask({}, b"") == 2
    box.close()
    assert children[1].log == ["kill", "wait"]
    box.close()
    assert len(children[1].log) == 2
    for child in children:
        child.asked.close()


def test_nobody_leaves_a_child_behind(confined: Callable[..., tuple[Sandbox, list[Child]]]) -> None:
    box, children = confined(framed({"done": 1}))
    assert box.ask({}, b"") == 1
    del box
    gc.collect()
    assert children[0].log == ["kill", "wait"]
    children[0].asked.close()


@pytest.mark.parametrize("answer", [b"", FRAME.pack(0, 0), FRAME.pack(9, 0) + b'{"done":', struct.pack(">I", 1)])
def test_half_an_answer_is_none(confined: Callable[..., tuple[Sandbox, list[Child]]], answer: bytes) -> None:
    box, children = confined(answer)
    with pytest.raises(SandboxError, match="took longer"):
        box.ask({}, b"")
    assert children[0].log == ["kill", "wait"]
    children[0].asked.close()


def test_a_long_answer_is_refused(confined: Callable[..., tuple[Sandbox, list[Child]]], monkeypatch: pytest.MonkeyPatch) -> None:
    answer = framed({"done": "abc"})
    for most, is_taken in ((len(answer) - FRAME.size, True), (len(answer) - FRAME.size - 1, False)):
        monkeypatch.setattr(sandbox, "MAX_ANSWER", most)
        box, children = confined(answer)
        if is_taken:
            assert box.ask({}, b"") == "abc"
        else:
            with pytest.raises(SandboxError):
                box.ask({}, b"")
        box.close()
        children[0].asked.close()


def test_a_child_that_does_not_answer_has_the_time_of_its_start_too(
    confined: Callable[..., tuple[Sandbox, list[Child]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = list[float]()

    def nothing(*given: Any) -> tuple[list[int], list[int], list[int]]:
        waits.append(given[3])
        return [], [], []

    monkeypatch.setattr(sandbox, "select", SimpleNamespace(select=nothing))
    box, children = confined(b"")
    with pytest.raises(SandboxError, match="longer than 2 s"):
        box.ask({}, b"")
    assert (waits, children[0].log) == ([2.0 + sandbox.START_S], ["kill", "wait"])
    children[0].asked.close()

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.proxy.response import body_rewriter, element_remover
from gatewayfilter.proxy.response.body_rewriter import EditedBody, Stage, WholeText, decode_text
from gatewayfilter.proxy.response.css_injector import StyleInjector
from gatewayfilter.proxy.response.element_remover import remove_elements
from tests.case_tables import all_cases


class Upper:
    @staticmethod
    def apply(text: str) -> str:
        return text.replace("ad", "AD")


@all_cases(
    ("body", "content_type", "codec"),
    [
        ("花园".encode(), "text/html", "utf-8"),
        ("花园".encode("gb18030"), "text/html; charset=gb2312", "gb18030"),
        ("<meta charset=big5>花園".encode("big5"), "text/html", "big5hkscs"),
        ("Straße €".encode("cp1252"), 'text/html; charset="ISO-8859-1"', "cp1252"),
        ("\ufeffx".encode(), "text/html; charset=latin1", "utf-8"),
        (b"\xff\xfe\x80", "text/html; charset=utf-8", "latin-1"),
        (b"x", "text/html; charset=nothing", "utf-8"),
        (b"x", "text/html; charset=rot13", "utf-8"),
        (b"x\xff", "text/html; charset=hex", "latin-1"),
    ],
)
def test_a_text_is_read_as_browsers_do(body: bytes, content_type: str, codec: str) -> None:
    text, found = decode_text(body, content_type)
    assert found == codec
    assert text.encode(codec) == body


@given(
    st.binary(max_size=300),
    st.sampled_from(["text/html", "text/html;charset=gbk", "text/plain; charset=shift_jis", "x; charset=utf-16"]),
)
def test_any_bytes_come_out_as_they_went_in(body: bytes, content_type: str) -> None:
    text, codec = decode_text(body, content_type)
    assert text.encode(codec) == body


@settings(max_examples=30)
@given(st.lists(st.binary(max_size=50)), st.sampled_from(["text/plain", "text/html"]))
def test_a_body_that_is_held_changes_only_where_the_rule_says(pieces: list[bytes], content_type: str) -> None:
    body = EditedBody("", [WholeText(content_type, [Upper()], ["nothing"], lambda: None)], lambda: None)
    out = [part for piece in pieces if piece for part in body(piece)] + body(b"")
    assert all(out)
    assert b"".join(out) == b"".join(pieces).replace(b"ad", b"AD")


def test_what_one_stage_held_passes_through_the_next() -> None:
    stages: list[Stage] = [WholeText("text/html", [Upper()], (), lambda: None), StyleInjector("p{}", charset_known=True)]
    assert EditedBody("", stages, lambda: None).whole(b"<html>ad") == b"<html><style>p{}</style>AD"


def test_nothing_follows_what_could_not_be_decoded() -> None:
    failed: list[bool] = []
    body = EditedBody("gzip", [], lambda: failed.append(True))
    assert [body(b"no gzip"), body(b"more"), body(b"")] == [[], [], []]
    assert failed == [True]


PAGE = '<!DOCTYPE html><html><head></head><body><p class="a">x</p><div><p class="a">y</p></div>café</body></html>'


@all_cases(
    ("selectors", "gone"),
    [
        (["p.a"], ['<p class="a">x</p>', '<p class="a">y</p>']),
        (["div", "p.a"], ['<p class="a">x</p>', '<div><p class="a">y</p></div>']),
        (["p:has-text(x)"], ['<p class="a">x</p>']),
        (["p:has-text('x')"], ['<p class="a">x</p>']),
        (["p:-abp-contains(/[XZ]/i)"], ['<p class="a">x</p>']),
        (["p:contains(/X/)"], []),
        (["p:has-text(/(a+)+$/)"], []),
        (["html", "body", "head"], []),
        ([":has-text(x)"], ['<p class="a">x</p>']),
        (['p:has-text("x")'], ['<p class="a">x</p>']),
        (["p:has-text('x)", "p:has-text(x')", "p:has-text('x\")"], []),
        (["p:has-text(/(/)", "p:has-text(/x/g)"], []),
        (["p[", "::x", ":has-text(", "", "p:xpath(//p)"], []),
        (["div:has(> p)"], ['<div><p class="a">y</p></div>']),
    ],
)
def test_elements_are_taken_out(selectors: list[str], gone: list[str]) -> None:
    expected = PAGE
    for piece in gone:
        expected = expected.replace(piece, "", 1)
    assert remove_elements(PAGE, selectors) == expected


def test_what_a_document_costs_in_expressions_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_into = 0

    class Counting:
        max_length = 65_536
        match_case = True

        def compile(self) -> "Counting":
            return self

        def search(self, _text: str) -> None:
            nonlocal looked_into
            looked_into += 1

        def steps(self, _length: int) -> int:
            return 5_000_000

    monkeypatch.setattr(element_remover, "guard_regex", lambda _text, **_options: Counting())
    page = f"<html><body>{'<div>x</div>' * 200}</body></html>"
    selectors = [f"div:has-text(/costly{number}/)" for number in range(50)]
    assert remove_elements(page, [*selectors]) == page
    assert looked_into * 5_000_000 == element_remover._MOST_STEPS


def test_replacements_end_when_a_body_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow:
        asked = 0

        def apply(self, text: str) -> str:
            Slow.asked += 1
            return text

    now = iter(range(1_000))
    monkeypatch.setattr("gatewayfilter.proxy.response.body_rewriter.time.perf_counter", lambda: float(next(now)))
    stage = WholeText("text/plain", [Slow()] * 100, (), lambda: None)
    stage.feed(b"text")
    assert stage.finish() == [b"text"]
    assert Slow.asked == 1


def test_all_replacements_are_made_within_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    class Note:
        def __init__(self, number: int) -> None:
            self._number = number

        def apply(self, text: str) -> str:
            return f"{text} {self._number}"

    limit = body_rewriter._EDIT_TIME_S
    for times, made in (([0.0] * 4, 3), ([0.0, limit, limit, limit], 3), ([0.0, 0.0, limit + 0.01], 2)):
        given = iter(times)
        monkeypatch.setattr("gatewayfilter.proxy.response.body_rewriter.time.perf_counter", given.__next__)
        stage = WholeText("text/plain", [Note(number) for number in range(3)], (), lambda: None)
        assert stage.feed(b"text") == []
        assert stage.finish() == [b"text 0 1 2"[: 4 + 2 * made]]
        assert stage.finish() == []


def test_a_text_is_held_up_to_its_most_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_rewriter, "MOST_HELD", 10)
    for size, too_long in ((10, 0), (11, 1)):
        told: list[None] = []
        stage = WholeText("text/plain", [Upper()], (), lambda told=told: told.append(None))  # type: ignore[misc]
        text = b"ad".rjust(size)
        assert stage.feed(text[:5]) == []
        assert stage.feed(text[5:]) == ([text] if too_long else [])
        assert (len(told), stage.feed(b"more") if too_long else []) == (too_long, [b"more"] if too_long else [])
        assert stage.finish() == ([] if too_long else [text.replace(b"ad", b"AD")])
        assert len(told) == too_long


def test_the_case_of_an_expression_counts_unless_it_is_left_out() -> None:
    page = "<html><head></head><body><p>AD one</p><p>ad two</p></body></html>"
    for expression, gone in (("/AD/", "<p>AD one</p>"), ("/ad/", "<p>ad two</p>"), ("/Ad/", ""), ("/Ad/i", "both")):
        expected = "<html><head></head><body></body></html>" if gone == "both" else page.replace(gone, "", 1)
        assert remove_elements(page, [f"p:has-text({expression})"]) == expected


def test_a_selector_is_remembered_up_to_its_most_characters() -> None:
    known = element_remover._understood
    known.cache_clear()
    longest = element_remover._LONGEST_KEY
    for length, remembered in ((longest, 1), (longest + 1, 1)):
        assert remove_elements(PAGE, [f"p.{'b' * (length - 2)}"]) == PAGE
        assert known.cache_info().currsize == remembered


def test_a_page_in_which_nothing_is_found_is_not_written_anew() -> None:
    odd = "<P CLASS=x>one<p>two<table><tr><td>&nbsp"
    assert remove_elements(odd, [".none"]) is odd


def test_a_charset_behind_many_blanks_takes_no_time() -> None:
    """No stopwatch: going back over the blanks would not end within the test's time limit."""
    assert decode_text(b"abc", f"text/html; charset={' ' * 200_000};") is not None


def test_thousands_of_elements_are_removed_at_once() -> None:
    """A loop over what a selector finds takes a minute for these."""
    assert "<p>" not in remove_elements("<b>kept</b>" + "<p>x</p>" * 6_000, ["p"])

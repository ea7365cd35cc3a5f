from hypothesis import given
from hypothesis import strategies as st

from gatewayfilter.proxy.response.css_injector import MOST_HELD, StyleInjector, meta_charset, style_hash, style_text
from tests.case_tables import all_cases

CSS = "p{}"
SHEET = b"<style>p{}</style>"


def inject(document: bytes, *, known: bool = True, step: int = 0) -> bytes:
    stage = StyleInjector(CSS, charset_known=known)
    pieces = [document[at : at + step] for at in range(0, len(document), step)] if step else [document]
    return b"".join([part for piece in pieces for part in stage.feed(piece)] + stage.finish())


@all_cases(
    ("before", "after"),
    [
        (b"<!DOCTYPE html><html><head>", b"<title>t</title></head>"),
        (b"\xef\xbb\xbf<!doctype html>\n<!-- <head> -->\n<html lang=\"a>b\"><HEAD id='x>y'>", b"</head>"),
        (b"<!DOCTYPE html>", b"<title>t</title>"),
        (b"", b"text"),
        (b"", b"<p>text"),
        (b"  \n", b"<header>not the head</header>"),
        (b'<!DOCTYPE html PUBLIC "-//W3C//DTD" "x"><html>', b"<body>"),
        (b'<?xml version="1.0"?><html>', b'<meta http-equiv="content-security-policy" content="style-src none">'),
        (b"<!--><html>", b"<i>"),
        (b"<!-- a -- b > c --><html\n>\n<head\n>", b"x"),
    ],
)
@all_cases("step", [0, 1, 3, 1024])
def test_the_sheet_goes_where_the_head_begins(before: bytes, after: bytes, step: int) -> None:
    assert inject(before + after, step=step) == before + SHEET + after


@all_cases(
    "document",
    [b"", b"  \n ", b"<!DOCTYPE html>", b"<!-- never closed", b"\xff\xfe<\x00h\x00"],
)
@all_cases("step", [0, 1000])
def test_what_has_no_head_stays_as_it_is(document: bytes, step: int) -> None:
    assert inject(document, step=step) == document


def test_three_bytes_are_enough_to_begin() -> None:
    stage = StyleInjector(CSS, charset_known=True)
    assert stage.feed(b"<p") == []
    assert b"".join(stage.feed(b">")) == SHEET + b"<p>"


def test_a_document_that_begins_with_too_much_to_hold_stays_as_it_is() -> None:
    document = b"<!--" + b"x" * 2 * MOST_HELD + b"--><p>"
    assert inject(document, step=1000) == document


@all_cases(
    ("document", "name"),
    [
        (b"<head><meta charset='GBK'>", b"GBK"),
        (b'<meta http-equiv=content-type content="text/html; charset=big5">', b"big5"),
        (b"<!-- <meta charset=no> --><meta name=x><meta charset=yes><meta charset=no>", b"yes"),
        (b"x" * 1024 + b"<meta charset=late>", b""),
        (b"<metadata charset=none>", b""),
        (b"<!-- <meta charset=no>", b""),
    ],
)
def test_the_encoding_that_the_document_names_is_not_pushed_away(document: bytes, name: bytes) -> None:
    assert meta_charset(document) == name
    meta = b'<meta charset="' + name + b'">' if name else b""
    if document.endswith(b"charset=no>") and not name:
        assert inject(document, known=False) == document  # a comment to the end
    else:
        assert meta + SHEET in inject(document, known=False)


@all_cases(
    "css", ["p::after{content:'</style><script>'}", "[a='<!--']{}", "[href*='广告']{}", "p{}\x00</STYLE >", "<" * 9 + "/style>"]
)
def test_a_sheet_cannot_end_its_element(css: str) -> None:
    text = style_text(css)
    assert text.isascii()
    assert "</" not in text
    assert "<!--" not in text
    assert style_hash(text).startswith("'sha256-")


@given(
    st.lists(
        st.sampled_from([b"<", b"html", b"head", b">", b" ", b"!", b"--", b"doctype", b"a", b'"', b"'", b"/", b"?"]), max_size=40
    )
)
def test_nothing_is_lost_however_it_is_cut(parts: list[bytes]) -> None:
    document = b"".join(parts)
    whole = inject(document)
    assert whole.replace(SHEET, b"", 1) == document or SHEET in document
    for step in (1, 2, 5):
        assert inject(document, step=step) == whole


@given(st.binary(max_size=200), st.integers(1, 50))
def test_any_bytes_come_out_again(document: bytes, step: int) -> None:
    assert inject(document, step=step).replace(SHEET, b"", 1) == document


def test_how_much_is_held_until_the_place_is_certain() -> None:
    for known, held in ((True, 2), (False, 1_023)):
        stage = StyleInjector(CSS, charset_known=known)
        text = b"text".ljust(held + 1, b"x")
        assert stage.feed(text[:held]) == []
        assert (stage.done, stage.injected) == (False, False)
        assert stage.feed(text[held:]) == [SHEET + text]
        assert (stage.done, stage.injected) == (True, True)
        assert (stage.feed(b"more"), stage.feed(b""), stage.finish()) == ([b"more"], [], [])


def test_a_beginning_without_a_head_is_held_up_to_its_most_bytes() -> None:
    stage, comment = StyleInjector(CSS, charset_known=True), b"<!--".ljust(MOST_HELD, b"x")
    assert stage.feed(comment) == []
    assert stage.feed(b"y") == [comment + b"y"]
    assert (stage.done, stage.injected) == (True, False)


@all_cases(
    ("document", "known", "expected"),
    [
        (b"<head><meta charset=gbk>", False, b'<head><meta charset="gbk">' + SHEET + b"<meta charset=gbk>"),
        (b"<head><meta charset=gbk>", True, b"<head>" + SHEET + b"<meta charset=gbk>"),
        (b"\xef\xbb\xbf<head><meta charset=gbk>", False, b"\xef\xbb\xbf<head>" + SHEET + b"<meta charset=gbk>"),
        (b"ab", True, SHEET + b"ab"),
        (b"a", False, SHEET + b"a"),
    ],
)
def test_the_encoding_is_repeated_only_where_nothing_else_names_it(document: bytes, expected: bytes, *, known: bool) -> None:
    assert inject(document, known=known) == expected

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayfilter.errors import ListError
from gatewayfilter.sources import ListFormat, sniff
from gatewayfilter.sources.formats.detect import HEAD_SIZE, refuse_non_lists
from tests.case_tables import all_cases


@all_cases(
    ("text", "list_format"),
    [
        ("[Adblock Plus 2.0]\n! x\n-ad-\n", ListFormat.ADBLOCK),
        ("! Title: x\n||a.example^\n", ListFormat.ADBLOCK),
        ("||a.example^$third-party\n@@||b.example^\n", ListFormat.ADBLOCK),
        ("! only this\n-ad-banner-\n", ListFormat.ADBLOCK),
        ("! x\nexample.com##.ad\n", ListFormat.ADBLOCK),
        ("# c\n127.0.0.1 localhost\n0.0.0.0 a.example\n", ListFormat.HOSTS),
        ("::1 localhost\n:: a.example\n", ListFormat.HOSTS),
        ("# c\na.example\nb.example # why\n*.c.example\n", ListFormat.DOMAINS),
        ("1.0.0.1\na.example\n例子.example\n", ListFormat.DOMAINS),
        ("address=/a.example/0.0.0.0\nserver=/b.example/\n", ListFormat.DNSMASQ),
        ("http://a.example/x\nhttps://b.example/$y=1\n", ListFormat.URLS),
        ("a.example/x\nb.example/y/\n", ListFormat.UT1),
        ("a.example\nb.example\nc.example\nd.example/y/\n", ListFormat.UT1),
        ("d41d8cd98f00b204e9800998ecf8427e\n", ListFormat.DIGESTS),
        (
            "$TTL 60\n@ SOA localhost. root.localhost. (\n 1 ; serial\n 2\n 3\n 4\n 5 )\n@ NS localhost.\na.example CNAME .\n",
            ListFormat.RPZ,
        ),
        ("a.example CNAME rpz-drop.\n*.a.example 300 IN CNAME *. ; why\n", ListFormat.RPZ),
        ('[\n {"action": "block", "kind": "domain", "pattern": ".a.example"}]', ListFormat.JSON),
        ("action,kind,pattern,comment\nblock,domain,.a.example,\n", ListFormat.CSV),
        ("\ufeffa.example\r\nb.example\r\n", ListFormat.DOMAINS),
    ],
)
def test_formats_are_recognised(text: str, list_format: ListFormat) -> None:
    assert sniff(text.encode()) is list_format


@all_cases(
    ("head", "why"),
    [
        (b"", "empty"),
        (b"\xef\xbb\xbf \r\n\n", "empty"),
        (b"# nothing\n", "no entry"),
        (b"\n  <!DOCTYPE html><html><body>404</body>", "web page"),
        (b"<HTML>\n0.0.0.0 a.example", "web page"),
        (b"<Error><Code>AccessDenied</Code></Error>", "web page"),
        (b'{"error": "no"}', "JSON"),
        (bytes(range(256)) * 20, "binary"),
        (b"a.example\n".decode().encode("utf-16"), "binary"),
        (b"once upon a time\nthere was a list\n", "prose"),
        (b"one\ntwo\nthree\n", "no known list format; its first entry is 'one'"),
        (b"# A list\n\n![badge](https://a.example/b.svg)\nhttps://b.example/\n- [x](https://c.example/)\n", "prose"),
        (b"! The title\nTo use this list you have to add it first.\n||a.example^\n", "prose"),
        (b"<casino bonus><50>\n< slots >,<online><20> #why\n", "phrase list.*words import FILE"),
        (b"#listcategory: x\n< green card lottery >\n", "phrase list.*words import FILE"),
        ("<乳房的><30>\n".encode("gb2312"), "phrase list"),
        (b"<html>\n<head>\n<title>\n", "web page"),
        (b'[{"name": "x", "value": "y"}]', "JSON"),
    ],
)
def test_what_is_no_list_is_refused(head: bytes, why: str) -> None:
    with pytest.raises(ListError, match=why):
        sniff(head)


@given(st.binary(max_size=500))
def test_any_bytes_are_a_format_or_a_list_error(head: bytes) -> None:
    with suppress(ListError):
        assert sniff(head) in ListFormat


@all_cases(
    "line",
    [
        "x" * 65_000,
        "a." * 30_000 + "!",
        "a b " * 16_000,
        "<" * 65_000,
        "<a>" + " " * 60_000 + "x",
        "a$" * 30_000,
        "#" * 65_000,
        "[" * 65_000,
        "](" * 30_000,
        "a CNAME " * 8_000,
        '[{"kind":' + '"' * 60_000,
    ],
)
def test_no_line_takes_long(line: str) -> None:
    """Each took seconds to years by an expression that backtracks; the test's own time limit would end it."""
    with suppress(ListError):
        sniff(f"{line}\n{line}".encode())


DOMAIN = "a.example\n"


@all_cases(
    ("head", "is_list"),
    [
        (b"\x01" + b"a" * 15 + b".bc\n", True),  # one octet in twenty is a control character
        (b"\x01" + b"a" * 15 + b".b\n", False),
        *((bytes([octet]) * 9 + b"a.example\n", fits) for octet, fits in ((8, False), (9, True), (12, True), (13, True))),
        *((bytes([octet]) * 9 + b"a.example\n", fits) for octet, fits in ((14, False), (31, False), (32, True))),
        (b"\xff\xff\xffa.exa\n" + b"b\n", True),  # a third is no text
        (b"\xff\xff\xffa.ex\n", False),
    ],
)
def test_how_much_of_a_list_may_be_no_text(head: bytes, *, is_list: bool) -> None:
    if is_list:
        refuse_non_lists(head)
    else:
        with pytest.raises(ListError, match="binary"):
            refuse_non_lists(head)


@all_cases(
    ("text", "found"),
    [
        (DOMAIN * 17 + "this is some prose\n" * 3, ListFormat.DOMAINS),
        (DOMAIN * 16 + "this is some prose\n" * 3, None),
        (DOMAIN * 3 + "three words here\n" * 3, ListFormat.DOMAINS),
        (DOMAIN * 2 + "three words here\n" * 3, None),
        (DOMAIN * 3 + "||b.example^\n", ListFormat.ADBLOCK),
        (DOMAIN * 4 + "||b.example^\n", ListFormat.DOMAINS),
        ("! c\n" + DOMAIN * 4 + "||b.example^\n", ListFormat.ADBLOCK),
        ("! c\n" + DOMAIN * 4 + "word\n", ListFormat.ADBLOCK),
        ("! c\n" + DOMAIN * 4, ListFormat.DOMAINS),
        ("![x]y\n" + DOMAIN * 4, ListFormat.DOMAINS),
        ("||*\n", ListFormat.ADBLOCK),
        ("!\n! ||a\n", None),
        ("#\n; c\n##.ad\n", ListFormat.ADBLOCK),
        ("a.example NS localhost.\nword\nword\nword\nb.example SOA a b\n", ListFormat.RPZ),
        ("a.example NS localhost.\nword\nword\nword\n", None),
        (DOMAIN * 2 + "a.example/x\n" * 3, ListFormat.UT1),
        (DOMAIN + "0.0.0.0 b.example\n" * 2, ListFormat.HOSTS),
    ],
)
def test_shares_of_lines_at_their_bounds(text: str, found: ListFormat | None) -> None:
    if found is not None:
        assert sniff(text.encode()) is found
    else:
        with pytest.raises(ListError):
            sniff(text.encode())


@all_cases(
    ("head", "is_list"),
    [
        (b"<a>\n<b>\na.example\nb.example\n", True),  # half of it
        (b"<a>\n<b>\n<c>\na.example\nb.example\n", False),
        (b"# x\n\n<a>\n", False),
        (b"a.example\n</p>\n<a>\n<b>\n<c>\n<d>\n", True),  # tags, not phrases
        (b"a.example\n</p>\n<a><5>\n<b><5>\n<c><5>\n<d><5>\n", False),
    ],
)
def test_how_many_lines_make_a_phrase_list(head: bytes, *, is_list: bool) -> None:
    if is_list:
        refuse_non_lists(head)
    else:
        with pytest.raises(ListError, match="phrase list"):
            refuse_non_lists(head)


def test_what_is_examined_is_bounded() -> None:
    assert sniff(DOMAIN.encode() * 500 + b"one word\n" * 5000) is ListFormat.DOMAINS
    assert sniff(DOMAIN.encode() * (HEAD_SIZE // 10) + b"aaaaaa" + bytes(90_000)) is ListFormat.DOMAINS
    with pytest.raises(ListError, match="it begins '" + "a b c d e " * 10 + "'$"):
        sniff(b"a b c d e " * 30)
    with pytest.raises(ListError, match="its first entry is '" + "a" * 100 + "'$"):
        sniff(b"a" * 300)
    with pytest.raises(ListError, match="web page"):
        sniff(b"<x " + b"y" * 4091 + b"</")
    assert refuse_non_lists(b"<x " + b"y" * 4092 + b"</")


@all_cases(
    ("line", "is_prose"),
    [
        ("one two three four", True),
        ("one two three", False),
        ("1 2 3 four five", False),
        ("a|b two three four", False),
        ("a.example##p four five six", False),
        ("0.0.0.0 a b c d", False),
        ("- [a](https://a.example/)", True),
        ("```", True),
    ],
)
def test_lines_of_prose(line: str, *, is_prose: bool) -> None:
    if is_prose:
        with pytest.raises(ListError, match="prose"):
            refuse_non_lists(line.encode())
    else:
        refuse_non_lists(line.encode())

"""Response policy zones and lists that this program exported."""

import json
from io import BytesIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.errors import RuleError
from gatewayfilter.model import ListAction
from gatewayfilter.sources import ListFormat, ParseReport
from gatewayfilter.sources.formats import list_export
from gatewayfilter.sources.formats.line_blocks import BLOCK_SIZE
from gatewayfilter.sources.formats.list_export import json_items
from gatewayfilter.sources.formats.parse import parse_list
from tests.case_tables import all_cases
from tests.sources.formats.test_list_formats_parse import Kept

RPZ, JSON, CSV = ListFormat.RPZ, ListFormat.JSON, ListFormat.CSV
BLOCK, ALLOW = ListAction.BLOCK, ListAction.ALLOW
HEAD = "$TTL 60\n$ORIGIN rpz.local.\n@ IN SOA localhost. root.localhost. (\n  1 ; serial\n  2h 3h 4w 60 )\n  IN NS localhost.\n"


def read(text: str, list_format: ListFormat, action: ListAction = BLOCK) -> tuple[list[str], ParseReport]:
    sink = Kept()
    report = parse_list(BytesIO(text.encode()), list_format, sink, action=action)
    return sink.keys, report


@all_cases(
    ("line", "keys"),
    [
        ("ads.example.com CNAME .", ["ads.example.com"]),
        ("ads.example.com 300 IN CNAME . ; why", ["ads.example.com"]),
        ("ads.example.com IN 1h CNAME *.", ["ads.example.com"]),
        ("ADS.Example.com\tcname\tRPZ-DROP.", ["ads.example.com"]),
        ("*.ads.example.com CNAME .", [".ads.example.com"]),
        ("ads.example.com.rpz.local. CNAME .", ["ads.example.com"]),
        ("ads.example.com A 0.0.0.0", ["ads.example.com"]),
        ("ads.example.com AAAA ::", ["ads.example.com"]),
        ("ads.example.com A 0.0.0.0\n  AAAA ::", ["ads.example.com", "ads.example.com"]),
        ("ads.example.com A 0.0.0.0\n  300 AAAA ::", ["ads.example.com", "ads.example.com"]),
        ("ads.example.com CNAME .\n$ORIGIN example.net.\nb CNAME .\nb.example CNAME .", ["ads.example.com"]),
        ("*.ads.example.com CNAME .\n  CNAME *.", [".ads.example.com"] * 2),
        ("ads.example.com CNAME .\n  IN CNAME *.\n  60 IN CNAME *.", ["ads.example.com"] * 3),
        ("a.example.com 1h30m IN CNAME .", ["a.example.com"]),
        ("x.example.com TXT (\nads.example.com CNAME .\n)\nb.example.com CNAME .", ["b.example.com"]),
        ("x.example.com TXT ((\n)\nads.example.com CNAME .\n)\nb.example.com CNAME .", ["b.example.com"]),
        ("x.example.com TXT )\nads.example.com CNAME .", ["ads.example.com"]),
        (
            "ads.example.com CNAME .\n$ORIGIN example.net.\nb CNAME .\n$ORIGIN rpz.local.\nc.example.com CNAME .",
            ["ads.example.com", "c.example.com"],
        ),
        ('ads.example.com TXT "a ; b"', []),
        ("; ads.example.com CNAME .", []),
    ],
)
def test_a_zone_blocks_names(line: str, keys: list[str]) -> None:
    assert read(HEAD + line, RPZ)[0] == keys
    if "rpz.local" not in line and "$ORIGIN" not in line:
        assert read(line, RPZ)[0] == keys  # without a head, as some publish it


def test_zones_whose_names_are_not_relative() -> None:
    soa = "rpz.local. IN SOA localhost. root.localhost. 1 2 3 4 5\n"
    assert read(f"{soa}ads.example.com CNAME .\nb.example.com.rpz.local. CNAME .", RPZ)[0] == ["ads.example.com", "b.example.com"]
    found, report = read("$ORIGIN rpz.local.\n@ CNAME .\nads.example.com CNAME .", RPZ)
    assert (found, report.rejected) == (["ads.example.com"], 1)


@all_cases(
    ("line", "why"),
    [
        ("www.example.com CNAME forcesafesearch.example.com.", "somewhere else"),
        ("www.example.com A 192.0.2.1", "somewhere else"),
        ("ok.example.com CNAME rpz-passthru.", "lets the name pass"),
        ("ads.example.com CNAME rpz-tcp-only.", "somewhere else"),
        ("com CNAME .", "public suffix"),
        ("*.co.uk CNAME .", "public suffix"),
        ("24.0.2.0.192.rpz-ip CNAME .", "trigger"),
        ("32.1.2.0.192.rpz-client-ip CNAME rpz-drop.", "trigger"),
        ("ns.example.com.rpz-nsdname CNAME .", "trigger"),
        ("ads.example.com. CNAME .", "outside of the zone"),
        ("@ CNAME .", "own name"),
        ("b.example.net. CNAME .", "outside of the zone"),
        ("ads.example.com", "no record"),
        ("ads.example.com CNAME", "no record"),
        ("ads.example.com PTR .", "no record"),
        ("ads.example.com DNAME .", "somewhere else"),
        ("ads.example.com A .", "somewhere else"),
        ("ads.example.com CNAME 0.0.0.0", "somewhere else"),
        ("rpz.local. CNAME .", "own name"),
        ("32.1.2.0.192.rpz-nsip CNAME .", "trigger"),
        ("$INCLUDE /etc/passwd", "not followed"),
        ("$GENERATE 1-9 a$ CNAME .", "not followed"),
    ],
)
def test_what_no_list_can_mean_is_rejected(line: str, why: str) -> None:
    found, report = read(HEAD + line, RPZ)
    assert (found, report.rejected) == ([], 1)
    assert (report.samples[0][0], why in report.samples[0][2]) == (7, True)


def test_a_zone_that_allows_takes_what_passes() -> None:
    found, report = read(HEAD + "ok.example.com CNAME rpz-passthru.\nads.example.com CNAME .\n", RPZ, ALLOW)
    assert found == ["ok.example.com"]
    assert "blocks the name, in a list that allows" in report.samples[0][2]


ENTRIES = [
    {"action": "block", "kind": "domain", "pattern": ".a.example"},
    {"action": "block", "kind": "host", "pattern": "b.example"},
    {"action": "block", "kind": "host", "pattern": "[2001:db8::1]"},
    {"action": "block", "kind": "url", "pattern": "c.example/x?y,z"},
    {"action": "block", "kind": "prefix", "pattern": "d.example/x/*"},
    {"action": "block", "kind": "prefix", "pattern": "d.example:8443/*"},
]
KEYS = [entry["pattern"] for entry in ENTRIES]


def _csv(entries: list[dict[str, str]]) -> str:
    rows = [[entry["action"], entry["kind"], f'"{entry["pattern"]}"', '"two\nlines"'] for entry in entries]
    return "\n".join(["action,kind,pattern,comment", *(",".join(row) for row in rows)])


@all_cases("text", [json.dumps(ENTRIES), json.dumps(ENTRIES, indent=2), "\ufeff" + json.dumps(ENTRIES)])
def test_exported_json_is_read(text: str) -> None:
    found, report = read(text, JSON)
    assert (found, report.rejected, report.taken) == (KEYS, 0, tuple(KEYS))


def test_exported_csv_is_read() -> None:
    found, report = read(_csv(ENTRIES), CSV)
    assert (found, report.rejected) == (KEYS, 0)


@all_cases(
    ("entry", "why"),
    [
        ({"action": "allow", "kind": "domain", "pattern": ".a.example"}, "means allow, in a list that means block"),
        ({"action": "block", "kind": "domain", "pattern": ".com"}, "public suffix"),
        ({"action": "block", "kind": "domain", "pattern": "a.example"}, "not how an entry"),
        ({"action": "block", "kind": "url", "pattern": "A.example/"}, "not how an entry"),
        ({"action": "block", "kind": "host", "pattern": "a.example/x"}, "no URL, host"),
        ({"action": "block", "kind": "wildcard", "pattern": "*a.example*"}, "list import"),
        ({"action": "block", "kind": "regex", "pattern": "a"}, "list import"),
        ({"action": "block", "kind": "sort", "pattern": "a"}, "no kind"),
        ({}, "means nothing"),
    ],
)
def test_a_bad_exported_entry_is_named_and_the_others_stay(entry: dict[str, str], why: str) -> None:
    found, report = read(json.dumps([entry, *ENTRIES], indent=0), JSON)
    assert (found, report.rejected) == (KEYS, 1)
    assert (report.samples[0][0], why in report.samples[0][2]) == (2, True)


@all_cases("text", ['[{"action": "block"', "[" * 5000, '[{}, 7, "x"]', "x", '[{"a": "' + "x" * 300_000 + '"}]'])
def test_broken_json_is_counted_not_raised(text: str) -> None:
    found, report = read(text, JSON)
    assert found == []
    assert report.rejected >= 1


@all_cases("text", ["a,b\n1,2\n", 'action,kind,pattern\n"' + "x" * 200_000, "action,kind,pattern\nblock\0,,\n"])
def test_broken_csv_is_counted_not_raised(text: str) -> None:
    found, report = read(text, CSV)
    assert (found, report.rejected) == ([], 1)


def test_json_of_any_length_is_read_in_pieces() -> None:
    class Pieces(BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            assert size == BLOCK_SIZE
            return super().read(size)

    entries = [{"action": "block", "kind": "domain", "pattern": f".host{number}.example"} for number in range(20_000)]
    items = list(json_items(Pieces(json.dumps(entries, indent=1).encode())))
    assert [item for _, item in items] == entries
    assert [line for line, _ in items] == [2 + 5 * number for number in range(20_000)]


@pytest.mark.parametrize(("length", "read_on"), [(20, True), (21, True), (22, False)])
def test_an_entry_is_no_longer_than_a_line_may_be(length: int, monkeypatch: pytest.MonkeyPatch, *, read_on: bool) -> None:
    monkeypatch.setattr(list_export, "BLOCK_SIZE", 1)
    monkeypatch.setattr(list_export, "MAX_LINE_LENGTH", 20)
    entry = f'"{"x" * (length - 2)}"'
    items = [item for _, item in json_items(BytesIO(f"[1,\n {entry} ]".encode()))]
    assert items[0] == 1
    assert items[1:] == [entry.strip('"')] if read_on else isinstance(items[1], RuleError)


@settings(max_examples=30)
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=9), lambda inner: st.lists(inner, max_size=5)))
def test_any_json_array_comes_back_item_by_item(value: object) -> None:
    array = [{"x": value}, {"y": [value]}]
    assert [item for _, item in json_items(BytesIO(json.dumps(array, ensure_ascii=False).encode()))] == array


@given(st.text(max_size=200), st.sampled_from([RPZ, JSON, CSV]), st.sampled_from([BLOCK, ALLOW]))
def test_any_text_is_read_without_raising(text: str, list_format: ListFormat, action: ListAction) -> None:
    report = read(text.encode(errors="replace").decode(), list_format, action)[1]
    assert report.rejected >= 0

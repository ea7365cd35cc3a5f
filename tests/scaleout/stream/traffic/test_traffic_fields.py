"""Readers of traffic field by field and at their bounds: URLs of requests, numbers, long lines, headers, types."""

import json
from typing import Any

import pytest

from gatewayfilter.scaleout.stream.traffic import json_scan
from gatewayfilter.scaleout.stream.traffic.access_logs import target_url
from gatewayfilter.scaleout.stream.traffic.arrow_lines import parsed
from gatewayfilter.scaleout.stream.traffic.formats import TrafficFormat, reader_of
from gatewayfilter.scaleout.stream.traffic.lines import LONGEST, JsonReader, NotARecordError, SkippedLineError, checked, text_of
from gatewayfilter.scaleout.stream.traffic.media_types import type_of
from gatewayfilter.scaleout.stream.traffic.probes import TsharkReader, url_of
from gatewayfilter.scaleout.stream.traffic.zeek import ZeekHeaders, ZeekReader
from tests.case_tables import all_cases


@all_cases(
    ("host", "port", "uri", "method", "url"),
    [
        ("a.test", 80, "/x", "GET", "http://a.test/x"),
        ("a.test", None, "x", "GET", "http://a.test/x"),
        ("a.test", 81, "x", "GET", "http://a.test:81/x"),
        ("a.test", 443, "/x", "GET", "https://a.test/x"),
        ("a.test", 443, "x", "GET", "https://a.test/x"),
        ("a.test:443", 443, "/x", "GET", "http://a.test:443/x"),
        ("a.test:81", 82, "/x", "GET", "http://a.test:81/x"),
        ("81", 82, "/x", "GET", "http://81:82/x"),
        ("81", 443, "/x", "GET", "https://81/x"),
        ("a:b", 82, "/", "GET", "http://a:b:82/"),
        ("::1", 80, "/", "GET", "http://[::1]/"),
        ("::1", 443, "/", "GET", "https://[::1]/"),
        ("[::1]", 82, "/", "GET", "http://[::1]:82/"),
        ("[::1]:81", 82, "/", "GET", "http://[::1]:81/"),
        ("a.test", 80, "https://b.test/", "GET", "https://b.test/"),
        ("a.test", 80, "http+s://b", "GET", "http://a.test/http+s://b"),
        ("a.test", 80, "/?u=http://b", "GET", "http://a.test/?u=http://b"),
        ("a.test", 80, "b.test:443 y", "CONNECT", "https://b.test:443/"),
    ],
)
def test_urls_of_requests(host: str, port: int | None, uri: str, method: str, url: str) -> None:
    assert url_of(host, port, uri, method) == url
    if method == "GET":
        assert url_of(host, port, uri) == url


def test_a_tunnel_to_no_host_is_no_request() -> None:
    for uri in ("", "/x", " a"):
        with pytest.raises(NotARecordError, match="no host"):
            url_of("a.test", 80, uri, "CONNECT")
    assert target_url("CONNECT", "a.test:443") == "https://a.test:443/"
    assert target_url("GET", "ftp://a/") == "ftp://a/"
    with pytest.raises(NotARecordError) as caught:
        target_url("GET", "x" * 200)
    assert str(caught.value) == "no absolute URL: " + "x" * 100


@all_cases(
    ("name", "kind"),
    [
        ("text/html; charset=x", "document"), (" TEXT/CSS ", "stylesheet"), ("application/json", "xmlhttprequest"),
        ("image/x", "image"), ("font/woff", "font"), ("audio/x", "media"), ("video/x", "media"), ("text/plain", "other"),
        ("", "other"), ("-", "other"), ("image", "image"),
    ],
)  # fmt: skip
def test_types_of_media(name: str, kind: str) -> None:
    assert type_of(name) == kind


def test_all_fields_of_tshark() -> None:
    line = b"1.5\t\t5\t\t80\t\th.test\t/x\tPOST\thttp://s.test/\t::1\t::2\t17\r\n"
    expected = {
        "time": 1.5, "client": "::1", "client_port": 5, "server": "::2", "server_port": 80, "protocol": "udp",
        "method": "POST", "url": "http://h.test/x", "source": "http://s.test/",
    }  # fmt: skip
    assert TsharkReader().record(line) == expected
    found = TsharkReader().record(b"1.5\ta\t5\tb\t80\t99\t\thttp://h.test/\t\t")
    assert (found["protocol"], found["method"], found["source"], found["url"]) == ("99", "GET", None, "http://h.test/")
    for blank in (b"", b" \t \r\n", b"1.5\ta\t5\tb\t80\t6\t\t\t\t"):
        with pytest.raises(SkippedLineError):
            TsharkReader().record(blank)
    for bad, why in (
        (b"1.5\ta\t5\tb\t80\t6\t\t\t\ts", "no host"),
        (b"1.5\ta\t5\t\t80\t6\t\t/x\t\t", "no host"),
        (b"1.5\ta\t5\tb\t80\t6\th", "7 fields in place of 8 to 13"),
        (b"\t".join([b"1"] * 11), "11 fields in place of 8 to 13"),
        (b"x\ta\t5\tb\t80\t6\th\t/", "no number"),
        (b"1.5\ta\t5\tb\tx\t6\th\t/", "no number"),
    ):
        with pytest.raises(NotARecordError, match=why):
            TsharkReader().record(bad)


def test_fields_of_access_logs() -> None:
    squid, combined = reader_of(TrafficFormat.SQUID), reader_of(TrafficFormat.COMBINED)
    line = b"1.5 45 192.0.2.7 TCP_MISS/304 12 GET http://a.test/ - HIER_DIRECT/192.0.2.8 image/png"
    assert squid.record(line) == {
        "time": 1.5, "client": "192.0.2.7", "server": "192.0.2.8", "protocol": "tcp", "method": "GET", "url": "http://a.test/",
        "type": "image", "status": 304, "bytes": 12,
    }  # fmt: skip
    assert squid.record(line.replace(b"192.0.2.8", b"-"))["server"] is None
    for bad in (line.rpartition(b" ")[0], b"1.5 45 c r/1 12 GET", b"1.5 45 c r/1 12 GET u - h"):
        with pytest.raises(NotARecordError, match="fewer than"):
            squid.record(bad)
    for reader in (squid, combined):
        with pytest.raises(SkippedLineError):
            reader.record(b" \r\n")
    line = b'192.0.2.7 - - [31/Oct/2026:12:30:00 +0100] "GET http://a.test/x HTTP/1.1" 200 17 "http://p.test/"'
    found = {
        "time": 1793446200.0, "client": "192.0.2.7", "protocol": "tcp", "method": "GET", "url": "http://a.test/x",
        "source": "http://p.test/", "status": 200, "bytes": 17,
    }  # fmt: skip
    assert combined.record(line) == found
    for before, after, name in (
        (b'"http://p.test/"', b'"-"', "source"), (b'"http://p.test/"', b'""', "source"), (b' "http://p.test/"', b"", "source"),
        (b" 17 ", b" - ", "bytes"),
    ):  # fmt: skip
        assert combined.record(line.replace(before, after)) == found | {name: None}


def test_all_fields_of_zeek() -> None:
    found = {
        "ts": 1.5, "id.orig_h": "192.0.2.7", "id.orig_p": 4, "id.resp_h": "192.0.2.8", "id.resp_p": 81, "method": "PUT",
        "host": "a.test", "uri": "/x", "referrer": "http://p.test/", "status_code": 201, "response_body_len": 9,
        "resp_mime_types": ["image/gif", "text/html"],
    }  # fmt: skip
    record = ZeekReader().record(json.dumps(found).encode() + b"\r\n")
    assert record == {
        "time": 1.5, "client": "192.0.2.7", "client_port": 4, "server": "192.0.2.8", "server_port": 81, "protocol": "tcp",
        "method": "PUT", "url": "http://a.test:81/x", "source": "http://p.test/", "type": "image", "status": 201, "bytes": 9,
    }  # fmt: skip

    def read(**other: Any) -> dict[str, Any]:
        return ZeekReader().record(json.dumps({**found, **other}).encode())

    kinds: list[Any] = [[], None, "", "text/css,image/gif"]
    assert [read(resp_mime_types=types)["type"] for types in kinds] == [
        *["other"] * 3,
        "stylesheet",
    ]
    assert [read(host=host)["url"] for host in ("", 7, None)] == ["http://192.0.2.8:81/x"] * 3
    assert (read(method="")["method"], read(uri="")["url"], read(referrer="")["source"]) == ("GET", "http://a.test:81/", None)
    assert read(**{"id.resp_p": None})["url"] == "http://a.test/x"
    moments = [1e11 - 1, 1e11, -1e11, None, "5.5"]
    assert [read(ts=moment)["time"] for moment in moments] == [1e11 - 1, 1e8, -1e8, None, 5.5]
    for name in ("status_code", "response_body_len", "id.orig_p"):
        with pytest.raises(NotARecordError, match="no number"):
            read(**{name: "x"})
    with pytest.raises(NotARecordError, match="not JSON"):
        ZeekReader().record(b'{"host": "a.test"')
    for blank in (b"", b" \r\n", b"#close\t2026", b"#fields\thost\turi"):
        with pytest.raises(SkippedLineError):
            ZeekReader().record(blank)


def test_headers_of_zeek_have_bounds() -> None:
    reader = ZeekReader()
    assert reader.header("host\tmethod") == ""
    assert reader.header("xuri\thost") == ""
    assert reader.header("uri\tx") == ""
    assert reader.header('{"host": "uri"}') == ""
    assert reader.header("uri\tmethod") == "#fields"
    assert reader.header("#separator " + "|" * 70) == "#separator"
    assert reader.header("#fields" + "|" * 64 + "host" + "|" * 64 + "uri") == "#fields"
    assert reader.record(b"a.test" + b"|" * 64 + b"/x")["url"] == "http://a.test/x"
    reader = ZeekReader()
    reader.header("#unset_field\t" + "~" * 70)
    reader.header("#fields\thost\turi\treferrer")
    assert reader.record(b"a.test\t/x\t" + b"~" * 64)["source"] is None
    assert reader.record(b"a.test\t/x\t" + b"~" * 70)["source"] == "~" * 70
    assert reader.record(b"a.test\t/x\t(empty)")["source"] is None
    reader.header("#empty_field\t-")
    assert reader.record(b"a.test\t/x\t(empty)")["source"] == "(empty)"
    assert reader.header("#other\tx") == "#other"
    reader.header("#fields\t" + "\t".join(["host", "uri", *map(str, range(300))]))
    with pytest.raises(NotARecordError, match="3 fields in place of 200"):
        reader.record(b"a.test\t/x\t-")


def test_a_header_is_kept_as_it_came() -> None:
    headers = ZeekHeaders()
    headers.note([b"#fields\thost\turi\r\n", b"a.test\t/uri", b"x" * 10, b"host\tmethod"])
    assert headers.lines == [b"#fields\thost\turi\r\n"]
    headers.note([b"#empty_field\t-", b"#separator \\x09"])
    assert headers.lines == [b"#separator \\x09", b"#empty_field\t-", b"#fields\thost\turi\r\n"]


@all_cases(
    ("name", "value", "why"),
    [
        ("time", 999_999_999_999.9, ""), ("time", 1e12, "out of range"), ("time", -1e12, "out of range"), ("time", 1, ""),
        ("time", "1", "no number"), ("time", float("nan"), "out of range"),
        ("status", (1 << 31) - 1, ""), ("status", 1 << 31, "out of range"), ("status", -(1 << 31), "out of range"),
        ("status", 1.0, "no number"), ("status", True, "no number"),
        ("bytes", (1 << 63) - 1, ""), ("bytes", 1 << 63, "out of range"), ("bytes", 1 << 31, ""),
        ("client", "é", ""), ("client", "\ud800", "no Unicode text"), ("client", 7, "no text"), ("client", None, ""),
    ],
)  # fmt: skip
def test_fields_have_their_type_and_range(name: str, value: Any, why: str) -> None:
    record = {"url": "http://a/", name: value}
    if not why:
        assert checked(record) is record
        return
    with pytest.raises(NotARecordError, match=f"^{name} is {why}$"):
        checked(record)


def test_urls_and_lines_have_a_longest() -> None:
    assert checked({"url": "x" * (LONGEST // 2)})
    with pytest.raises(NotARecordError, match="line too long"):
        checked({"url": "x" * (LONGEST // 2 + 1)})
    for url in (None, 7):
        with pytest.raises(NotARecordError, match="no url"):
            checked({"url": url})
    begin, end = '{"url": "http://a/", "x": "é'.encode(), b'"}'
    for size, bad in ((LONGEST + 1, []), (LONGEST + 2, [(0, "not JSON")])):
        line = begin + b"x" * (size - len(begin) - len(end)) + end
        assert reader_of(TrafficFormat.JSON).read([line]).bad == bad
        squid = reader_of(TrafficFormat.COMBINED).read([b"x" * size, b"x" * 400])
        assert [row for row, _ in squid.bad] == [0, 1]


def test_lines_are_read_alike_without_the_compiled_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [b'{"url": "http://a/", "status": 200}', b'{"url": "b", "type": "script"}', '\ufeff{"url": "é"}'.encode()]
    cases = [lines, [*lines, b"{"], [b"", *lines, b" "], [b'{"url":\n"c"}', b'{"x": 1}'], [b"5", b'"x"', b"[1]"], []]
    compiled = [JsonReader().read(case) for case in cases]
    monkeypatch.setattr(json_scan, "_compiled", None)
    plain = [JsonReader().read(case) for case in cases]
    for one, other in zip(compiled, plain, strict=True):
        assert (
            one.batch.select(["url", "status", "type"]).to_pylist() == other.batch.select(["url", "status", "type"]).to_pylist()
        )
        assert (list(one.rows), one.bad) == (list(other.rows), other.bad)
    assert [other.bad for other in plain][1:] == [
        [(3, "not JSON")], [], [(1, "no url")], [(row, "not an object") for row in range(3)], [],
    ]  # fmt: skip
    assert list(plain[2].rows) == [1, 2, 3]


def test_bytes_that_are_no_utf_8_stand_as_in_a_url() -> None:
    assert text_of("é\x7f".encode()) == "é\x7f"
    assert text_of(b"a\xfc\x80\xffz\xc3\xa9") == "a%FC%80%FFzé"


def test_what_arrow_cannot_read_is_left_to_the_other_reader() -> None:
    for blob in (b"null", b"[]", b"", b'{"url": 1}', b'{"url": "a"', b'{"time": "x"}'):
        assert parsed(blob) is None
    long = b'{"url": "' + b"a" * 200_000 + b'"}'
    found = parsed(b" " + long + b"\n" + long)
    assert found is not None
    assert found.num_rows == 2

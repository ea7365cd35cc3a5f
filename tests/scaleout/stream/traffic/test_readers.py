"""Lines of recorded traffic become records; bad ones are set aside with the reason."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.scaleout.stream.batch import RECORD
from gatewayfilter.scaleout.stream.traffic.formats import TrafficFormat, reader_of
from tests.case_tables import all_cases

ZEEK_HEAD = (
    b"#separator \\x09\n#fields\tts\tid.orig_h\tid.orig_p\tid.resp_h\tid.resp_p\tmethod\thost\turi\treferrer\tresp_mime_types"
)

CASES: list[tuple[str, bytes, dict[str, Any]]] = [
    ("jsonl", b'{"url": "http://a.test/", "type": "script", "x": [1]}', {"url": "http://a.test/", "type": "script"}),
    (
        "squid",
        b"1793449800.123     45 192.0.2.7 TCP_MISS/200 1234 GET http://a.test/x.js - HIER_DIRECT/198.51.100.1 text/javascript",
        {"time": 1793449800.123, "client": "192.0.2.7", "server": "198.51.100.1", "protocol": "tcp", "method": "GET",
         "url": "http://a.test/x.js", "type": "script", "status": 200, "bytes": 1234},
    ),
    (
        "squid",
        b"1793449800.123     45 2001:db8::7 NONE_NONE/503 0 CONNECT a.test:443 - HIER_NONE/- -",
        {"time": 1793449800.123, "client": "2001:db8::7", "protocol": "tcp", "method": "CONNECT", "url": "https://a.test:443/",
         "type": "other", "status": 503, "bytes": 0},
    ),
    (
        "combined",
        b'192.0.2.7 - - [31/Oct/2026:12:30:00 +0000] "GET http://a.test/x HTTP/1.1" 200 17 "http://page.test/" "curl" TCP_MISS:-',
        {"time": 1793449800.0, "client": "192.0.2.7", "protocol": "tcp", "method": "GET", "url": "http://a.test/x",
         "source": "http://page.test/", "status": 200, "bytes": 17},
    ),
    (
        "zeek",
        ZEEK_HEAD + b"\n1793449800.5\t192.0.2.7\t40000\t198.51.100.1\t8080\tGET\ta.test\t/x\\x09y\t-\timage/gif",
        {"time": 1793449800.5, "client": "192.0.2.7", "client_port": 40000, "server": "198.51.100.1", "server_port": 8080,
         "protocol": "tcp", "method": "GET", "url": "http://a.test:8080/x\ty", "type": "image"},
    ),
    (
        "zeek",
        json.dumps({"ts": "2026-10-31T12:30:00Z", "id.orig_h": "192.0.2.7", "id.orig_p": 4, "id.resp_h": "::1", "id.resp_p": 80,
                    "method": "POST", "host": "2001:db8::1", "uri": "/", "referrer": "http://p.test/", "status_code": 204,
                    "response_body_len": 0, "resp_mime_types": ["text/html"]}).encode(),
        {"time": 1793449800.0, "client": "192.0.2.7", "client_port": 4, "server": "::1", "server_port": 80, "protocol": "tcp",
         "method": "POST", "url": "http://[2001:db8::1]/", "source": "http://p.test/", "type": "document", "status": 204,
         "bytes": 0},
    ),
    (
        "tshark",
        b"1793449800.5\t192.0.2.7\t40000\t198.51.100.1\t80\t6\ta.test\t/x?y\tGET\t",
        {"time": 1793449800.5, "client": "192.0.2.7", "client_port": 40000, "server": "198.51.100.1", "server_port": 80,
         "protocol": "tcp", "method": "GET", "url": "http://a.test/x?y"},
    ),
]  # fmt: skip


@all_cases(("form", "text", "record"), CASES)
def test_fields_of_lines(form: str, text: bytes, record: dict[str, Any]) -> None:
    read = reader_of(TrafficFormat(form)).read(text.split(b"\n"))
    assert read.bad == []
    assert [{name: value for name, value in row.items() if value is not None} for row in read.batch.to_pylist()] == [record]
    assert list(read.rows) == [text.count(b"\n")]


@all_cases(
    ("form", "line", "why"),
    [
        ("jsonl", b"{", "not JSON"),
        ("jsonl", b"[" * 90_000, "not JSON"),
        ("jsonl", b'{"url": 1}', "no url"),
        ("jsonl", b'{"url": "http://a/", "bytes": 99999999999999999999}', "bytes is out of range"),
        ("jsonl", b'{"url": "http://a/", "status": "x"}', "status is no number"),
        ("jsonl", b'{"url": "http://a/", "client": 7}', "client is no text"),
        ("jsonl", b'{"url": "http://a/\\ud800"}', "url is no Unicode text"),
        ("jsonl", b"\xff", "not JSON"),
        ("jsonl", b'{"url": "http://a/\xff"}', "not JSON"),
        ("squid", b"1.0 2 3", "fewer than"),
        ("squid", b"1.0 45 192.0.2.7 TCP_MISS/200 1 GET http://a.test/ - H/-", "fewer than"),
        ("squid", b"x 45 192.0.2.7 TCP_MISS/200 1 GET http://a.test/ - H/- -", "no number"),
        ("squid", b"1.0 45 192.0.2.7 NONE_NONE/400 1 GET error:invalid-request - H/- -", "no absolute URL"),
        ("combined", b"nonsense", "not the combined format"),
        ("combined", b'a - - [99/Oct/2026:12:30:00 +0000] "GET http://a/ HTTP/1.1" 200 1', "time cannot be read"),
        ("zeek", b"1\t2", "2 fields in place of"),
        ("zeek", b'{"uri": "/"}', "no host"),
        ("zeek", b'{"host": "a", "ts": "T"}', "no number"),
        ("tshark", b"1\ta\tx\tb\t80\t6\th\t/", "no number"),
    ],
)  # fmt: skip
def test_bad_lines_have_their_reason(form: str, line: bytes, why: str) -> None:
    good = next(text for name, text, _ in CASES if name == form)
    read = reader_of(TrafficFormat(form)).read([*good.split(b"\n"), line, b"", good.split(b"\n")[-1]])
    assert read.batch.num_rows == (1 if form == "zeek" and b"\t" in good and b"#" not in good else 2)
    ((place, reason),) = read.bad
    assert place == good.count(b"\n") + 1
    assert why in reason


@pytest.mark.parametrize("line", [b"null", b" \tnull {}"])
def test_a_null_in_front_does_not_end_the_process(line: bytes) -> None:
    """As it does in Arrow's parser of JSON (pyarrow 26.0.1)."""
    read = reader_of(TrafficFormat.JSON).read([line, b'{"url": "http://a/"}'])
    assert (read.batch.num_rows, [row for row, _ in read.bad]) == (1, [0])


def test_many_lines_that_arrow_reads_are_one_batch() -> None:
    lines = [b'{"url": "http://a/%d", "source": "\\u0061"}' % number for number in range(3_000)]
    read = reader_of(TrafficFormat.JSON).read(lines)
    assert read.batch["url"].to_pylist() == [f"http://a/{number}" for number in range(3_000)]
    assert list(read.rows) == list(range(3_000))


def test_a_line_with_a_line_end_in_it_is_no_two_records() -> None:
    read = reader_of(TrafficFormat.JSON).read([b'{"url": "http://a/"}\n{"url": "http://b/"}', b""])
    assert (read.batch.num_rows, list(read.rows), read.bad) == (0, [], [(0, "not JSON")])


@pytest.mark.parametrize("form", list(TrafficFormat))
@settings(max_examples=30)
@given(lines=st.lists(st.one_of(st.binary(max_size=60), st.sampled_from([text for _, text, _ in CASES])), max_size=5))
def test_no_line_raises(form: TrafficFormat, lines: list[bytes]) -> None:
    read = reader_of(form).read(lines)
    assert read.batch.schema.equals(RECORD) or form is TrafficFormat.JSON
    assert read.batch.num_rows == len(read.rows)
    assert set(read.rows).isdisjoint(place for place, _ in read.bad)


SQUID_5_7 = b"""\
1795436341.460     69 127.0.0.1 TCP_MISS/200 300 GET http://127.0.0.1:18099/a.js? - HIER_DIRECT/127.0.0.1 text/javascript
1795436341.558     34 127.0.0.1 TCP_MISS/501 632 POST http://127.0.0.1:18099/none - HIER_DIRECT/127.0.0.1 text/html
1795436341.618      0 127.0.0.1 NONE_NONE/503 0 CONNECT 127.0.0.1:18097 - HIER_DIRECT/127.0.0.1 -
1795436341.796      1 127.0.0.1 TCP_MISS/502 3402 GET http://nohost.invalid/ - HIER_NONE/- text/html"""
COMBINED_5_7 = b"""\
127.0.0.1 - - [23/Nov/2026:12:19:01 +0000] "GET http://127.0.0.1:18099/a.js? HTTP/1.1" 200 300 "http://p.example/" "c" TCP_MISS:-
127.0.0.1 - - [23/Nov/2026:12:19:01 +0000] "POST http://127.0.0.1:18099/none HTTP/1.1" 501 632 "-" "curl" TCP_MISS:HIER_DIRECT
127.0.0.1 - - [23/Nov/2026:12:19:01 +0000] "CONNECT 127.0.0.1:18097 HTTP/1.1" 503 0 "-" "curl/7.88.1" NONE_NONE:HIER_DIRECT
127.0.0.1 - - [23/Nov/2026:12:19:01 +0000] "GET http://nohost.invalid/ HTTP/1.1" 502 3402 "-" "curl/7.88.1" TCP_MISS:HIER_NONE"""


@pytest.mark.parametrize(("form", "text"), [(TrafficFormat.SQUID, SQUID_5_7), (TrafficFormat.COMBINED, COMBINED_5_7)])
def test_what_squid_wrote(form: TrafficFormat, text: bytes) -> None:
    """Lines of squid 5.7: a script, a POST, a tunnel and a name that does not resolve."""
    read = reader_of(form).read(text.split(b"\n"))
    assert read.bad == []
    assert read.batch["url"].to_pylist() == [
        *("http://127.0.0.1:18099/a.js?", "http://127.0.0.1:18099/none", "https://127.0.0.1:18097/", "http://nohost.invalid/"),
    ]
    assert read.batch["status"].to_pylist() == [200, 501, 503, 502]
    assert round(read.batch["time"][0].as_py()) == 1795436341


TSHARK_4_0 = b"""\
1795759690.899733782\t127.0.0.1\t53822\t127.0.0.1\t80\t6\t\t\t\t
1795759690.901654811\t127.0.0.1\t53822\t127.0.0.1\t80\t6\tads.example\t/a.js?id=7\tGET\thttp://news.example/page?x=1
1795759690.922853469\t127.0.0.1\t35866\t127.0.0.1\t8080\t6\t127.0.0.1:8080\t/none\tPOST\t
1795759690.945882227\t127.0.0.1\t35882\t127.0.0.1\t8080\t6\t127.0.0.1:8080\t/a.js\tGET\t"""


@all_cases("fields", [8, 9, 10])
def test_tshark_lines_of_packets_without_a_request_are_passed_over(fields: int) -> None:
    good = b"\t".join([*TSHARK_4_0.split(b"\n")[1].split(b"\t")[:fields]])
    bare = b"\t".join([*good.split(b"\t")[:6], *[b""] * (fields - 6)])
    read = reader_of(TrafficFormat.TSHARK).read([bare, good])
    assert (read.bad, list(read.rows)) == ([], [1])


@all_cases("line", [b"1\ta\t1\tb\t80\t6\t", b"1\ta\t1\tb\t80\t6\t\t\t\t\t", b"1\ta\t1\tb\t80\t6\t\t\tGET"])
def test_tshark_lines_of_another_length_or_without_a_host_are_bad(line: bytes) -> None:
    read = reader_of(TrafficFormat.TSHARK).read([line])
    assert [row for row, _ in read.bad] == [0]


def test_what_tshark_wrote() -> None:
    """Lines of tshark 4.0.17 from a capture: a packet without a request, which is none on purpose, and three with one."""
    read = reader_of(TrafficFormat.TSHARK).read(TSHARK_4_0.split(b"\n"))
    assert read.bad == []
    assert list(read.rows) == [1, 2, 3]
    assert read.batch["url"].to_pylist() == [
        "http://ads.example/a.js?id=7",
        *("http://127.0.0.1:8080/none", "http://127.0.0.1:8080/a.js"),
    ]
    assert read.batch["source"].to_pylist()[0] == "http://news.example/page?x=1"
    assert read.batch["method"].to_pylist() == ["GET", "POST", "GET"]
    assert read.batch["server_port"].to_pylist() == [80, 8080, 8080]
    assert round(read.batch["time"][0].as_py(), 3) == 1795759690.902


def test_a_request_of_http_1_0_has_the_address_of_its_server() -> None:
    line = b"1795759690.9\t127.0.0.1\t53822\t127.0.0.2\t8080\t6\t\t/old?x=1\tGET\t"
    read = reader_of(TrafficFormat.TSHARK).read([line])
    assert read.batch["url"].to_pylist() == ["http://127.0.0.2:8080/old?x=1"]


SQUID_ODD = rb"""1795783448.933     43 127.0.0.1 TCP_MISS/200 583 GET http://a.test/r_ck - HIER_DIRECT/127.0.0.1 text/javascript
1795783448.977     44 127.0.0.1 TCP_MISS/200 583 GET http://a.test/q"uote - HIER_DIRECT/127.0.0.1 text/javascript
1795783449.021     42 127.0.0.1 TCP_MISS/200 583 GET http://a.test/two  blanks anne%20e HIER_DIRECT/127.0.0.1 text/html
1795783451.069   2001 127.0.0.1 TCP_MISS_ABORTED/000 0 M$X http://nohost.invalid/ - HIER_NONE/- -
1795783451.127      0 ::1 TCP_DENIED/403 3440 CONNECT [::1]:443 - HIER_NONE/- text/html""".replace(b"r_ck", b"r\xfcck")
COMBINED_ODD = rb"""127.0.0.1 - - [27/Nov/2026:12:44:08 +0000] "GET http://a.test/r_ck HTTP/1.1" 200 583 "-" "c" TCP_MISS:-
127.0.0.1 - - [27/Nov/2026:12:44:08 +0000] "GET http://a.test/q"uote HTTP/1.1" 200 583 "http://p.test/" "c" TCP_MISS:-
127.0.0.1 - anne%20e [27/Nov/2026:12:44:08 +0000] "GET http://a.test/two  blanks HTTP/1.1" 200 583 "-" "c" TCP_MISS:-
127.0.0.1 - - [27/Nov/2026:12:44:11 +0000] "M$X http://nohost.invalid/ HTTP/1.1" 0 0 "-" "c" TCP_MISS_ABORTED:HIER_NONE
::1 - - [27/Nov/2026:12:44:11 +0000] "CONNECT [::1]:443 HTTP/1.1" 403 3440 "-" "-" TCP_DENIED:HIER_NONE""".replace(
    b"r_ck", b"r\xfcck"
)


@pytest.mark.parametrize(("form", "text"), [(TrafficFormat.SQUID, SQUID_ODD), (TrafficFormat.COMBINED, COMBINED_ODD)])
def test_odd_lines_of_squid(form: TrafficFormat, text: bytes) -> None:
    """As squid 5.7 writes them: bytes that are no UTF-8, quotes, blanks (`uri_whitespace allow`), any method, IPv6, no answer."""
    read = reader_of(form).read(text.split(b"\n"))
    assert read.bad == []
    urls = [
        "http://a.test/r%FCck",
        'http://a.test/q"uote',
        "http://a.test/two  blanks",
        "http://nohost.invalid/",
        "https://[::1]:443/",
    ]
    assert read.batch["url"].to_pylist() == urls
    assert read.batch["status"].to_pylist() == [200, 200, 200, 0, 403]
    assert read.batch["method"].to_pylist() == ["GET", "GET", "GET", "M$X", "CONNECT"]


@all_cases(
    "line",
    [
        b"1795783461.702      0 127.0.0.1 NONE_NONE/000 0 - error:transaction-end-before-headers - HIER_NONE/- -",
        b'127.0.0.1 - - [27/Nov/2026:12:44:21 +0000] "- error:transaction-end-before-headers NONE/0.0" 0 0 "-" "-" NONE_NONE:-',
        b'127.0.0.1 - - [27/Nov/2026:12:44:21 +0000] "- error:transaction-end-before-headers NONE/0.0" 0 0 NONE_NONE:-',
    ],
)
def test_what_squid_writes_of_no_request_has_its_reason(line: bytes) -> None:
    form = TrafficFormat.SQUID if line.startswith(b"1795") else TrafficFormat.COMBINED
    assert reader_of(form).read([line]).bad == [(0, "no absolute URL: error:transaction-end-before-headers")]


def test_a_line_of_blanks_and_capitals_is_refused_at_once() -> None:
    line = b'a - - [31/Oct/2026:12:30:00 +0000] "GET x' + b" A" * 200_000
    assert reader_of(TrafficFormat.COMBINED).read([line]).bad == [(0, "not the combined format")]


TSHARK_TAIL = b"a.test\t/x\tGET\t"


@all_cases(
    ("line", "client", "server"),
    [
        (b"1.5\t\t5\t\t80\t\t" + TSHARK_TAIL + b"\t::1\t2001:db8::1\t6", "::1", "2001:db8::1"),
        (b"1.5\t10.0.0.1,192.0.2.7\t5\t10.0.0.2,192.0.2.8\t80\t4,6\t" + TSHARK_TAIL + b"\t\t\t", "192.0.2.7", "192.0.2.8"),
        (b"1.5\t\t5\t\t80\t\t" + TSHARK_TAIL, None, None),
    ],
)
def test_addresses_of_tshark(line: bytes, client: str | None, server: str | None) -> None:
    (record,) = reader_of(TrafficFormat.TSHARK).read([line]).batch.to_pylist()
    assert (record["client"], record["server"], record["protocol"]) == (client, server, "tcp")
    assert (record["url"], record["method"]) == ("http://a.test/x", "GET")


@pytest.mark.parametrize(
    ("tail", "why"),
    [
        (b"a.test,a.test\t/p1,/p2\tGET,GET\t", "several requests in one packet"),
        (b"a.test,b.test\t/two\tGET\t", "several hosts"),
    ],
)
def test_what_tshark_joins_is_no_request_of_another_host(tail: bytes, why: str) -> None:
    assert reader_of(TrafficFormat.TSHARK).read([b"1.5\t192.0.2.7\t5\t192.0.2.8\t80\t6\t" + tail]).bad == [(0, why)]

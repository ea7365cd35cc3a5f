"""Zeek's http.log in the forms in which Zeek writes it: headers, separators, escapes, times, requests without a host."""

import json
from typing import Any

from gatewayfilter.scaleout.stream.traffic.formats import TrafficFormat, reader_of
from gatewayfilter.scaleout.stream.traffic.lines import ReadLines
from gatewayfilter.scaleout.stream.traffic.zeek import ZeekHeaders
from tests.case_tables import all_cases

OWN = (
    "1793449800.250000\tCx1\t192.0.2.7\t40000\t198.51.100.1\t{port}\t1\t{method}\t{host}\t{uri}\t-\t1.1\tcurl\t-\t0\t43\t200\tOK\t-\t-"
    "\t(empty)\t-\t-\t-\t-\t-\t-\tFx1\t-\timage/gif"
)

ANOTHER_SEPARATOR = r"""#separator \x7c
#set_separator|,
#unset_field|~
#fields|ts|id.orig_h|id.resp_h|id.resp_p|host|uri|referrer
#types|time|addr|addr|port|string|string|string
1.5|192.0.2.7|198.51.100.1|80|a.test|/x|~
#close|2026-10-31"""


def read(text: str) -> ReadLines:
    return reader_of(TrafficFormat.ZEEK).read([line.encode(errors="surrogateescape") for line in text.split("\n")])


def own(uri: str = "/a", host: str = "a.test", method: str = "GET", port: int = 80) -> str:
    """A line with Zeek's own fields."""
    return OWN.format(uri=uri, host=host, method=method, port=port)


def row(text: str) -> dict[str, Any]:
    """The only record of lines that have no bad one."""
    found = read(text)
    assert found.bad == []
    (record,) = found.batch.to_pylist()
    return {name: value for name, value in record.items() if value is not None}


@all_cases(
    ("line", "url"),
    [
        (own(), "http://a.test/a"),
        (own(port=443), "https://a.test/a"),
        (own(port=8080), "http://a.test:8080/a"),
        (own(host="a.test:8080", port=8080), "http://a.test:8080/a"),
        (own(host="a.test:8080", port=443), "http://a.test:8080/a"),
        (own(host="-"), "http://198.51.100.1/a"),
        (own(host="-", port=8000), "http://198.51.100.1:8000/a"),
        (own(uri="http://b.test/x", host="-"), "http://b.test/x"),
        (own(uri="abcde://b.test/"), "abcde://b.test/"),
        (own(uri="abcdef://b.test/"), "http://a.test/abcdef://b.test/"),
        (own(host="::1"), "http://[::1]/a"),
        (own(host="[::1]", port=8080), "http://[::1]:8080/a"),
        (own(host="[::1]:8080", port=8080), "http://[::1]:8080/a"),
        (own(host="8080", port=443), "https://8080/a"),
        (own(uri="(empty)"), "http://a.test/"),
        (own(uri="-"), "http://a.test/"),
        (own(uri="a.test:443", method="CONNECT", host="-"), "https://a.test:443/"),
        (own(uri="a.test:25 //", method="CONNECT"), "https://a.test:25/"),
        (own(uri="*", method="OPTIONS"), "http://a.test/*"),
        (own(uri=r"/\xe8\xb5\x8c"), "http://a.test/赌"),
        (own(uri=r"/r\xfcck \xff"), "http://a.test/r%FCck %FF"),
        (own(uri=r"/b\\x07\x7c\\"), "http://a.test/b\\x07|\\"),
        (own(uri="/赌😄"), "http://a.test/赌😄"),
    ],
)
def test_urls_of_lines(line: str, url: str) -> None:
    assert row(line)["url"] == url


@all_cases(
    "text",
    [
        ANOTHER_SEPARATOR,
        "#separator ||\n#fields||ts||id.orig_h||id.resp_h||id.resp_p||host||uri\n1.5||192.0.2.7||198.51.100.1||80||a.test||/x",
        "ts\tid.orig_h\tid.resp_h\tid.resp_p\thost\turi\n1.5\t192.0.2.7\t198.51.100.1\t80\ta.test\t/x",
        "#fields\t_system\tts\tid_orig_h\tid_resp_h\tid_resp_p\thost\turi\nw1\t1.5\t192.0.2.7\t198.51.100.1\t80\ta.test\t/x",
        json.dumps(
            {"ts": 1.5, "id_orig_h": "192.0.2.7", "id_resp_h": "198.51.100.1", "id_resp_p": 80, "host": "a.test", "uri": "/x"}
        ),
        "#separator \n#fields\tts\tid.orig_h\tid.resp_h\tid.resp_p\thost\turi\n1.5\t192.0.2.7\t198.51.100.1\t80\ta.test\t/x",
    ],
)
def test_headers_tell_how_lines_are_read(text: str) -> None:
    expected = {
        "time": 1.5,
        "client": "192.0.2.7",
        "server": "198.51.100.1",
        "server_port": 80,
        "protocol": "tcp",
        "method": "GET",
    }
    assert row(text) == {**expected, "url": "http://a.test/x", "type": "other"}


def test_marks_of_values_that_are_not_set_are_those_of_the_last_headers() -> None:
    head = "#fields\thost\turi\tmethod\treferrer\n"
    rows = "a.test\t/\tGET\t{}"
    for headers, value, source in (
        ("", "-", None),
        ("", "(empty)", None),
        ("#unset_field\t~\n", "-", "-"),
        ("#unset_field\t~\n", "~", None),
        ("#unset_field\t~\n", "(empty)", None),
        ("#empty_field\t!\n", "(empty)", "(empty)"),
        ("#empty_field\t!\n", "!", None),
        ("#empty_field\t!\n", "-", None),
        ("#unset_field\t" + "u" * 70 + "\n", "u" * 64, None),
        ("#unset_field\t" + "u" * 70 + "\n", "u" * 65, "u" * 65),
    ):
        assert row(headers + head + rows.format(value)).get("source") == source
    assert row("#separator " + "|" * 70 + "\n#fields" + "|" * 64 + "host\na.test")["url"] == "http://a.test/"


@all_cases("moment", [1793449800.25, "2026-10-31T12:30:00.250000Z", 1793449800250, 1793449800250.0])
def test_times_in_seconds_in_milliseconds_and_in_words(moment: object) -> None:
    assert row(json.dumps({"ts": moment, "host": "a.test"}))["time"] == 1793449800.25


def test_the_type_is_that_of_the_first_file() -> None:
    for types, found in ((["image/gif", "text/html"], "image"), ([], "other"), ("text/css,image/gif", "stylesheet")):
        assert row(json.dumps({"host": "a.test", "resp_mime_types": types}))["type"] == found


def test_objects_of_very_many_fields_are_read() -> None:
    fields = {"host": "a.test", "id_resp_p": 8080} | {f"field {number}": number for number in range(300)}
    assert row(json.dumps(fields))["url"] == "http://a.test:8080/"


def test_escapes_in_json_are_of_bytes_alone() -> None:
    assert row(json.dumps({"host": "a.test", "uri": r"/\xfc\x07 c:\\d"}))["url"] == "http://a.test/%FC\x07 c:\\\\d"


@all_cases(
    ("line", "why"),
    [
        (own(uri="-", host="-", method="-"), "no request"),
        ('{"_path": "conn", "id.orig_h": "192.0.2.7", "id.resp_h": "198.51.100.1"}', "no request"),
        ("[1]", "1 fields in place of 30"),
        ('{"method": "GET", "uri": "/"}', "no host"),
        (own(uri="//", method="CONNECT"), "no host"),
        (own(uri="", method="CONNECT"), "no host"),
        ("method\turi\nGET\t/x", "no host"),
        ('{"host": "a.test", "id.resp_p": [80]}', "no number"),
    ],
)
def test_lines_without_a_request_have_their_reason(line: str, why: str) -> None:
    found = read(line)
    assert found.batch.num_rows == 0
    assert [why in reason for _, reason in found.bad] == [True]


def test_the_headers_that_hold_are_kept_for_lines_that_are_read_apart() -> None:
    headers = ZeekHeaders()
    assert headers.lines == []
    first = [b"#separator |", b"#unset_field|~", b"#path|http", b"#fields|host|uri", b"a.test|/uri", b"#close|x"]
    headers.note(first)
    assert headers.lines == [first[0], first[1], first[3]]
    headers.note([b'{"uri": "/", "host": "uri"}', b"b|c", b"uri|host", b"\xff|uri"])
    assert headers.lines == [first[0], first[1], b"uri|host"]

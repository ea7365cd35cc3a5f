import re
from pathlib import Path

import pytest

from gatewayfilter.proxy.pages.block_page import BlockPages
from gatewayfilter.proxy.pages.translations import CHINESE, ENGLISH
from gatewayfilter.proxy.pages.upstream_errors import INTERNAL_MESSAGE, Fault, is_origin_fault, read_fault
from tests.case_tables import all_cases

NASTY = '</code><script>alert(1)</script>"\r\nset-cookie: a=b'


@all_cases(
    ("status", "message", "fault"),
    [
        (400, "Bad HTTP request line: b'GARBAGE'", Fault.BAD_REQUEST),
        (400, "Certificate verify failed", Fault.BAD_REQUEST),
        (502, "Certificate verify failed: self-signed certificate", Fault.CERTIFICATE),
        (502, "Certificate verify failed: certificate has expired", Fault.CERTIFICATE),
        (502, "Certificate verify failed: hostname mismatch", Fault.CERTIFICATE),
        (502, "[Errno -2] Name or service not known", Fault.NAME),
        (502, "[Errno -3] Temporary failure in name resolution", Fault.NAME),
        (502, "[Errno -5] No address associated with hostname", Fault.NAME),
        (502, "not a name: label too long", Fault.NAME),
        (502, "[Errno 111] Connect call failed ('127.0.0.1', 1)", Fault.REFUSED),
        (502, "Multiple exceptions: [Errno 111] Connect call failed ('::1', 1, 0, 0), [Errno 111] …", Fault.REFUSED),
        (502, "[Errno 110] Connect call failed ('192.0.2.1', 80)", Fault.TIMEOUT),
        (502, "timed out after 30 seconds", Fault.TIMEOUT),
        (502, INTERNAL_MESSAGE, Fault.INTERNAL_ADDRESS),
        (502, "[Errno 101] Network is unreachable", Fault.UNREACHABLE),
        (502, "[Errno 113] No route to host", Fault.UNREACHABLE),
        (502, "Upstream proxy 192.0.2.1:3128 refused HTTP CONNECT request: 407 Proxy Authentication Required", Fault.UNREACHABLE),
        (502, "The remote server does not speak TLS.", Fault.TLS),
        (502, "server closed connection", Fault.BAD_ANSWER),
        (502, "unexpected server response: b'SSH-2.0-OpenSSH'", Fault.BAD_ANSWER),
    ],
)
def test_what_mitmproxy_says_is_understood(status: int, message: str, fault: Fault) -> None:
    assert read_fault(status, message) is fault


@all_cases(
    ("message", "is_the_origins"),
    [
        ("[Errno 111] Connect call failed", True),
        ("Client disconnected.", False),
        ("stream reset by client (CANCEL)", False),
        (INTERNAL_MESSAGE, False),
    ],
)
def test_whose_fault_it_is(message: str, *, is_the_origins: bool) -> None:
    assert is_origin_fault(message) == is_the_origins


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("fault", Fault)
def test_each_fault_has_a_page(fault: Fault, language: str) -> None:
    response = BlockPages().error(fault, "said", url="http://x.example/", accept_language=language)
    title, why = {"en": ENGLISH, "zh": CHINESE}[language].faults[fault]
    text = response.text or ""
    assert response.status_code == {
        "bad-request": 400,
        "internal-address": 403,
        "headers-too-large": 431,
        "http-version": 505,
        "timeout": 504,
    }.get(fault, 502)
    what = "block" if fault is Fault.INTERNAL_ADDRESS else "error"
    assert response.headers["x-gatewayfilter"] == f"{what}; reason={fault}"
    assert response.headers["cache-control"] == "no-store"
    for part in (title, why, "http://x.example/", "said", fault.value):
        assert part.replace("'", "&#39;") in text


def test_everything_is_escaped_and_bounded() -> None:
    response = BlockPages().error(Fault.BAD_ANSWER, NASTY + "m" * 5000, url="http://x/" + NASTY + "u" * 5000)
    text = response.text or ""
    assert "<script" not in text
    assert len(text) < 10_000
    assert set(re.findall(r"<([a-z]+)", text)).isdisjoint({"script", "a", "form", "img"})
    assert "set-cookie" not in response.headers
    assert all("\n" not in value and "\r" not in value for value in response.headers.values())


def test_head_and_undecodable_text() -> None:
    assert BlockPages().error(Fault.NAME, method="HEAD").raw_content == b""
    assert BlockPages().error(Fault.NAME, url="http://x/\udcff").raw_content


@all_cases("fault", Fault)
def test_each_fault_is_documented(fault: Fault) -> None:
    text = (Path(__file__).parents[3] / "docs" / "reasons.md").read_text(encoding="utf-8")
    assert f"| `{fault}` | {fault.status} |" in text

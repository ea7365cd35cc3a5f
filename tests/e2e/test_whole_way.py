"""The whole way of a request, over http and https: first visit, crawler, verdict, growth, block page, a person's word."""

import json
import socket
import stat
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.e2e.e2e_gateway import ANSWER_S, Answer, GatewayProcess, Origin, until

VERDICT_S = 3.0


def learned(gateway: GatewayProcess, url: str) -> Answer:
    """Visits until the filter answers itself."""

    def visit() -> Answer | None:
        answer = gateway.get(url)
        return answer if answer.reason else None

    return until("block page", visit, VERDICT_S)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_first_visit_passes_and_the_next_one_is_blocked(
    gateway: GatewayProcess, http_site: Origin, https_site: Origin, scheme: str
) -> None:
    site = http_site if scheme == "http" else https_site
    url = f"{site.base}/casino/1"
    first = gateway.get(url)
    assert (first.status, first.reason) == (200, "")
    assert "Golden Reef" in first.text

    page = learned(gateway, url)
    assert page.status == 403
    assert page.reason == "learned"
    assert page.headers["cache-control"] == "no-store"
    for shown in ("Gambling", "score", "casino", "learned by the filter"):
        assert shown in page.text

    answer = gateway.json("check", url)
    deciders = [item["decider"] for item in answer["answers"]]
    assert deciders == ["manual", "bloom", "blacklist", "adblock", "spellings", "whitelist", "unknown"]
    assert answer["verdict"]["action"] == "block"
    assert answer["classification"]["classification"]["category"] == "gambling"
    assert answer["classification"]["classification"]["evidence"]
    assert gateway.cli("check", url).returncode == 1

    assert gateway.cli("list", "add", "--allow", url).returncode == 0
    until("page again", lambda: gateway.get(url).status == 200, 1.0)
    assert gateway.json("check", url)["verdict"]["reason"] == "manual-allow"


def test_chinese_page_without_a_charset_header(gateway: GatewayProcess, http_site: Origin) -> None:
    url = f"{http_site.base}/zh"
    assert gateway.get(url).status == 200
    page = learned(gateway, url)
    assert "百家乐" in page.text or "赌场" in page.text


def test_block_page_speaks_chinese(gateway: GatewayProcess, http_site: Origin) -> None:
    url = f"{http_site.base}/casino/2"
    gateway.get(url)
    learned(gateway, url)
    chinese = {"Accept-Language": "zh-CN,zh;q=0.9,en;q=0.5"}
    until("Chinese block page", lambda: "赌博" in gateway.get(url, chinese).text, VERDICT_S)  # of the other worker, too


@pytest.mark.slow
def test_harmless_page_becomes_known_good_and_is_never_fetched(gateway: GatewayProcess, http_site: Origin) -> None:
    url = f"{http_site.base}/garden/19"
    assert gateway.get(url).status == 200
    until("verdict", lambda: gateway.json("check", url)["verdict"]["reason"] == "whitelist")
    for _ in range(5):
        assert gateway.get(url).status == 200
    time.sleep(0.5)
    assert http_site.crawls("/garden/19") == 0  # it was judged as it passed


@pytest.mark.slow
def test_a_list_takes_effect_while_serving(gateway: GatewayProcess, http_site: Origin, tmp_path: Path) -> None:
    rules = tmp_path / "own-ads.txt"
    rules.write_text("[Adblock Plus 2.0]\n/ads/banner.js$script\n")
    page, script = f"{http_site.base}/garden/2", f"{http_site.base}/ads/banner.js"
    headers = {"Referer": page, "Sec-Fetch-Dest": "script"}
    assert "advertisement" in gateway.get(script, headers).text
    added = gateway.cli("source", "add", str(rules), "--category", "ads")
    assert added.returncode == 0, added.stderr

    def stub() -> Answer | None:
        answer = gateway.get(script, headers)
        return answer if answer.reason else None

    blocked = until("stub", stub, 5.0)
    assert (blocked.status, blocked.text, blocked.reason) == (200, "", "adblock")
    removed = gateway.cli("source", "remove", "own-ads")
    assert removed.returncode == 0, removed.stderr
    until("script again", lambda: "advertisement" in gateway.get(script, headers).text, 5.0)


def test_persons_block_and_its_removal(gateway: GatewayProcess, http_site: Origin) -> None:
    url = f"{http_site.base}/garden/3"
    assert gateway.cli("list", "add", "--block", url, "--comment", "no beans").returncode == 0
    until("block", lambda: gateway.get(url).reason == "manual-block", 1.0)
    assert gateway.cli("list", "remove", url).returncode == 0
    until("page", lambda: gateway.get(url).status == 200, 1.0)


def test_bundled_lists_are_active(gateway: GatewayProcess) -> None:
    answer = gateway.get("http://blocked.gatewayfilter.test/")
    assert answer.status == 403
    assert "starter" in answer.text


def test_decisions_are_logged_with_reason_and_list(gateway: GatewayProcess) -> None:
    gateway.get("http://blocked.gatewayfilter.test/some/path?secret=1")

    def logged() -> dict[str, object] | None:
        lines = gateway.cli("log", "tail", "--json").stdout.splitlines()
        records = [json.loads(line) for line in lines]
        return next((record for record in records if "some/path" in record["url"]), None)

    record = until("record", logged)
    assert record["action"] == "block"
    assert str(record["source_list"]).startswith("starter-")


def test_nothing_in_the_state_folder_is_open_to_others(gateway: GatewayProcess) -> None:
    assert stat.S_IMODE(gateway.state.stat().st_mode) == 0o700
    for secret in ("ca/mitmproxy-ca.pem", "gatewayfilter.sqlite3"):
        assert stat.S_IMODE((gateway.state / secret).stat().st_mode) == 0o600, secret
    open_to_others = {path.name for path in gateway.state.rglob("*") if is_open_to_others(path)}
    assert open_to_others <= {"mitmproxy-dhparam.pem"}  # a constant of mitmproxy


def is_open_to_others(path: Path) -> bool:
    """Returns whether it is a file that others may use; what the filter writes anew has gone meanwhile."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    return stat.S_ISREG(mode) and bool(mode & 0o077)


def test_malformed_requests_leave_it_standing(gateway: GatewayProcess, http_site: Origin) -> None:
    host, _, port = gateway.address.rpartition(":")
    for raw in (
        b"GET http://exa mple.com/ HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET http://[::1/ HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET http://a..b/ HTTP/1.1\r\nHost: a..b\r\n\r\n",
        b"GET http://127.0.0.1:99999/ HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x00\x05hello",
        b"\x00" * 64,
        b"GET http://127.0.0.1/ HTTP/1.1\r\nHost: x\r\n" + b"X: " + b"y" * 200_000 + b"\r\n\r\n",
        b"CONNECT :0 HTTP/1.1\r\n\r\n",
    ):
        with (
            socket.create_connection((host, int(port)), timeout=ANSWER_S) as connection,
            suppress(ConnectionError),  # closed with bytes unread, it is reset
        ):
            connection.sendall(raw)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65536):
                pass
    assert gateway.get(f"{http_site.base}/garden/4").status == 200

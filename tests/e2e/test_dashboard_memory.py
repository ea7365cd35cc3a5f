"""The memory of the dashboard's process beside a filter that runs: all pages and answers of the API, and 50 live logs."""

import re
import select
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import httpx2
import psutil
import pytest

from gatewayfilter.model import LogRecord
from gatewayfilter.store import Store
from gatewayfilter.web import pages
from tests.e2e.e2e_gateway import GatewayProcess, until

pytestmark = [pytest.mark.slow, pytest.mark.real, pytest.mark.timeout(600)]

MOST_MIB: Final = 120
"""Resident memory of the process, shared libraries included, some seconds after the last request."""
STREAMS: Final = 50
PASSWORD: Final = "correct horse battery staple"
NAMES: Final = {
    "decision_id": "1",
    "number": "1",
    "name": "kids",
    "rule_id": "1",
    "service_id": "youtube",
    "category": "adult",
}
NEEDED: Final = {"url": "https://example.com/a", "text": "example", "words": "example"}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    state: Path = tmp_path_factory.mktemp("dashboard") / "state"
    state.mkdir(mode=0o700)
    settings = {"proxy__workers": "1", "learn__enabled": "false", "web__listen": "127.0.0.1:0"}
    filter_ = GatewayProcess(state, **settings)
    for arguments in (
        ("list", "block", "ads.example"),
        ("client", "add", "kids", "--address", "192.0.2.7"),
        ("group", "add", "kids"),
        ("policy", "add", "kids"),
        ("schedule", "add", "kids", "--policy", "kids", "--bedtime"),
        ("quota", "add", "kids", "--policy", "kids", "--service", "youtube", "--minutes", "30"),
    ):
        filter_.cli(*arguments)
    with filter_ as running:
        yield running


def test_memory_after_every_page_and_answer(running: GatewayProcess) -> None:
    status = until("dashboard", lambda: running.status("web"), 40.0)
    process = psutil.Process(status["pid"])
    with httpx2.Client(
        base_url=status["url"], follow_redirects=True, timeout=60, headers={"accept-language": "zh-CN"}
    ) as browser:
        _log_in(browser)
        answers = {path: _visit(browser, path) for path in [*_api_paths(browser), *_page_paths()]}
    assert {path: code for path, code in answers.items() if code >= 500} == {}
    assert sum(code == 200 for code in answers.values()) >= 50
    until("memory within its bound", lambda: process.memory_info().rss <= MOST_MIB << 20, 40.0)


def test_memory_with_50_live_logs(running: GatewayProcess) -> None:
    status = until("dashboard", lambda: running.status("web"), 40.0)
    process = psutil.Process(status["pid"])
    with httpx2.Client(base_url=status["url"], timeout=60) as browser:
        _log_in(browser)
        cookies = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    # A password's hash takes memory for some seconds.
    until("memory within its bound", lambda: process.memory_info().rss <= MOST_MIB << 20, 40.0)
    with ExitStack() as streams, closing(Store.open(f"sqlite:///{running.state}/gatewayfilter.sqlite3")) as store:
        readers = [streams.enter_context(closing(_stream(status["url"], cookies))) for _ in range(STREAMS)]
        received = dict.fromkeys(readers, b"")
        most = 0
        for step in range(60):
            now = time.time()
            url = f"http://site{step % 7}.example/{'a' * 60}"
            records = [LogRecord(now, "192.0.2.7", "GET", f"{url}/{n}", "image", "allow", "unknown") for n in range(100)]
            store.log.write(records)
            _read_for(readers, received, 0.2)
            most = max(most, process.memory_info().rss)

        def all_told() -> bool:
            _read_for(readers, received, 0.2)
            return all(b"event: decisions" in text for text in received.values())

        until("decisions in each stream", all_told, 20.0)
    assert most <= MOST_MIB << 20


def _stream(url: str, cookies: str) -> socket.socket:
    host, _, port = url.removeprefix("http://").rstrip("/").partition(":")
    found = socket.create_connection((host, int(port)), 20)
    found.sendall(f"GET /api/v1/events HTTP/1.1\r\nHost: {host}:{port}\r\nCookie: {cookies}\r\n\r\n".encode())
    return found


def _read_for(readers: list[socket.socket], received: dict[socket.socket, bytes], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        for reader in select.select(readers, [], [], left)[0]:
            received[reader] = received[reader][-200_000:] + reader.recv(1 << 18)


def _log_in(browser: httpx2.Client) -> None:
    """Signs in; the first test of the two, whichever runs first, sets up the account."""
    path, sent = "/login", {"name": "kim", "password": PASSWORD}
    if browser.get("/setup", follow_redirects=False).status_code == 200:
        path, sent = "/setup", {**sent, "repeated": PASSWORD}
    assert browser.post(path, data=sent, follow_redirects=False).status_code == 303


def _visit(browser: httpx2.Client, path: str) -> int:
    with browser.stream("GET", path) as answer:
        if answer.headers.get("content-type", "").startswith("text/event-stream"):  # it has no end
            next(answer.iter_raw())
        else:
            answer.read()
        return answer.status_code


def _api_paths(browser: httpx2.Client) -> Iterator[str]:
    document: dict[str, Any] = browser.get("/api/v1/openapi.json").json()
    for path, methods in document["paths"].items():
        if "get" in methods:
            needed = [one["name"] for one in methods["get"].get("parameters", ()) if one["in"] == "query" and one.get("required")]
            query = "&".join(f"{name}={quote(NEEDED[name])}" for name in needed)
            yield f"{_filled(path)}?{query}"


def _page_paths() -> Iterator[str]:
    for router in pages.routers():
        for route in router.routes:
            if "GET" in getattr(route, "methods", ()):
                yield _filled(getattr(route, "path", "/"))


def _filled(path: str) -> str:
    return re.sub(r"\{(\w+)(?::\w+)?\}", lambda found: NAMES.get(found[1], "1"), path)

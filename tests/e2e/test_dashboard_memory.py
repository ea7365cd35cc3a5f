"""The memory of the dashboard's process: every page and every answer of the API, once, beside a filter that runs."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import httpx2
import psutil
import pytest

from gatewayfilter.web import pages
from tests.e2e.e2e_gateway import GatewayProcess, until

pytestmark = [pytest.mark.slow, pytest.mark.real, pytest.mark.timeout(600)]

MOST_MIB: Final = 120
"""Resident memory of the process, shared libraries included, some seconds after the last request."""
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
        _set_up(browser)
        answers = {path: _visit(browser, path) for path in [*_api_paths(browser), *_page_paths()]}
    assert {path: code for path, code in answers.items() if code >= 500} == {}
    assert sum(code == 200 for code in answers.values()) >= 50
    until("memory within its bound", lambda: process.memory_info().rss <= MOST_MIB << 20, 40.0)


def _set_up(browser: httpx2.Client) -> None:
    assert browser.get("/setup").status_code == 200
    sent = {"name": "kim", "password": PASSWORD, "repeated": PASSWORD}
    assert browser.post("/setup", data=sent, follow_redirects=False).status_code == 303


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

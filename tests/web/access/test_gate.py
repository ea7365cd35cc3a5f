"""The gate of the dashboard: host names, requests of other sites' pages, sizes, header fields."""

from pathlib import Path

import pytest

from gatewayfilter.web.access.gate import MAX_BODY
from tests.web.web_fakes import ADMIN, VIEWER, dashboard


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8081", 200),
        ("localhost:8081", 200),
        ("[::1]:8081", 200),
        ("192.168.1.1", 200),
        ("filter.example", 200),
        ("FILTER.example:443", 200),
        ("rebound.example", 421),
        ("127.0.0.1.rebound.example", 421),
        ("localhost.rebound.example:8081", 421),
        ("", 421),
    ],
)
def test_only_names_of_this_filter_are_answered(tmp_path: Path, host: str, status: int) -> None:
    with dashboard(tmp_path, web__names=["filter.example"]) as web:
        assert web.client.get("/healthz", headers={"host": host}).status_code == status


@pytest.mark.parametrize(
    ("headers", "refused"),
    [
        ({}, False),
        ({"sec-fetch-site": "same-origin"}, False),
        ({"sec-fetch-site": "none"}, False),
        ({"origin": "http://127.0.0.1:8081"}, False),
        ({"sec-fetch-site": "cross-site"}, True),
        ({"sec-fetch-site": "same-site"}, True),
        ({"origin": "http://evil.example"}, True),
        ({"origin": "null"}, True),
        ({"origin": "https://127.0.0.1:8081"}, True),
        ({"origin": "http://127.0.0.1:8080"}, True),
    ],
)
def test_changes_that_other_pages_send_are_refused(tmp_path: Path, headers: dict[str, str], *, refused: bool) -> None:
    with dashboard(tmp_path) as web:
        assert (web.client.post("/api/v1/status", headers=headers).status_code == 403) is refused
        assert web.client.get("/api/v1/status", headers=headers).status_code == 200


def test_large_bodies_are_refused_also_without_a_length(tmp_path: Path) -> None:
    with dashboard(tmp_path) as web:
        assert web.client.post("/api/v1/status", content=bytes(MAX_BODY + 1)).status_code == 413
        assert web.client.post("/api/v1/status", headers={"content-length": "-1"}).status_code == 413


@pytest.mark.parametrize("path", ["/healthz", "/api/v1/status", "/api/v1/nothing", "/nothing", "/static/x/y"])
def test_every_answer_has_the_header_fields(tmp_path: Path, path: str) -> None:
    with dashboard(tmp_path) as web:
        headers = web.client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["cache-control"] == "no-store" or path.startswith("/static")


def test_a_change_must_repeat_the_token_of_the_session(tmp_path: Path) -> None:
    with dashboard(tmp_path, ADMIN) as web:
        assert web.client.post("/api/v1/status").status_code == 405  # passed, but there is nothing to post to
        assert web.client.get("/api/v1/status", headers={"x-csrf-token": "wrong"}).status_code == 200


def test_nobody_is_told_to_log_in(tmp_path: Path) -> None:
    with dashboard(tmp_path, None) as web:
        answer = web.client.get("/api/v1/status")
        assert (answer.status_code, answer.headers["content-type"]) == (401, "application/problem+json")
        assert answer.json() == {"type": "about:blank", "title": "Unauthorized", "status": 401, "detail": "log in first"}
        web.who.identity = VIEWER
        assert web.client.get("/api/v1/status").status_code == 200

"""Hostile names, addresses and notes on every page: shown as text, without a fault."""

import re
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.web.page_addresses import fields_of, page_routes
from tests.web.web_fakes import Dashboard, dashboard

HOSTILE = [
    '"><script>alert(1)</script>', "javascript:alert(1)", "a\u202egnp.exe", "a\x00b", "x" * 2_000, "{{7*7}}",
    "<img src=x onerror=alert(1)>", '"><img src=x>', "\ud83d", "%00%ff", "' or 1=1 --", "../../etc/passwd", "\r\nset-cookie: x=y",
]  # fmt: skip


def filled(opened: Dashboard) -> int:
    """Stores hostile names, notes and rules by the API; returns how many of them were taken."""
    taken = 0
    for number, text in enumerate(HOSTILE):
        shown = text.encode("utf-8", "replace").decode()
        for path, body in (
            ("groups", {"name": shown}),
            ("groups", {"name": f"g{number}", "note": shown}),
            ("clients", {"name": shown, "addresses": [f"192.0.2.{number + 1}"]}),
            ("clients", {"name": f"c{number}", "addresses": [f"198.51.100.{number + 1}"], "note": shown}),
            ("policies", {"name": shown}),
            ("rules", {"patterns": [f"r{number}.example"], "action": "block", "comment": shown, "group": shown, "force": True}),
            ("rules", {"patterns": [f"p{number}.example/{shown}"], "action": "allow", "force": True}),
        ):
            answer = opened.client.post(f"/api/v1/{path}", json=body)
            assert answer.status_code < 500, (path, text, answer.text)
            taken += answer.is_success
    return taken


@pytest.mark.slow
def test_no_page_executes_what_it_shows(tmp_path: Path) -> None:
    with dashboard(tmp_path / "state") as opened:
        assert filled(opened) > 30
        for route in page_routes():
            path, fields = route.path, fields_of(route)
            for text in HOSTILE:
                value = text.encode("utf-8", "replace").decode()
                url = re.sub(r"\{[^}]*\}", quote(value, safe="").replace("\\", r"\\"), path)
                answer = opened.client.get(url, params=dict.fromkeys(fields, value))
                assert answer.status_code < 500 or path == "/readyz", (path, text, answer.text[:300])
                assert "<script>alert" not in answer.text, path
                assert "<img src=x" not in answer.text, path
                assert 'href="javascript:' not in answer.text, path
                assert "set-cookie" not in answer.headers, path

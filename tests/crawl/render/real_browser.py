"""Limits of rendering for tests with the real browser: what a page does on a busy machine takes as long as it takes."""

import pytest

from gatewayfilter.crawl.render import render_proxy, renderer


def be_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives the browser, and each page in it, more time than the crawler does."""
    monkeypatch.setattr(renderer, "TIME_LIMIT_S", 60.0)
    monkeypatch.setattr(renderer, "SETTLE_S", 40.0)
    monkeypatch.setattr(renderer, "START_S", 100.0)
    monkeypatch.setattr(render_proxy, "HEAD_S", 60.0)
    monkeypatch.setattr(render_proxy, "CONNECT_S", 60.0)

"""Pages in two pieces: a browser gets the frame, and the rest after a pause; nobody else waits."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gatewayfilter.web.rendering import pacing, pages
from gatewayfilter.web.rendering.pacing import LONG, paced
from tests.web.web_fakes import dashboard

NAVIGATION = {"sec-fetch-mode": "navigate"}


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses of answers; none is made."""
    made: list[float] = []

    async def pause(seconds: float) -> None:
        made.append(seconds)

    class Clockwork:
        get_running_loop = staticmethod(asyncio.get_running_loop)
        sleep = staticmethod(pause)

    monkeypatch.setattr(pacing, "asyncio", Clockwork)
    return made


def test_the_time_that_the_rest_takes_is_part_of_the_pause(pauses: list[float]) -> None:
    def parts() -> Iterator[str]:
        yield "frame"
        time.sleep(0.02)
        yield "b"
        yield rest

    async def collected() -> list[str]:
        return [part async for part in paced(parts(), 10.0)]

    rest = "c" * LONG
    assert asyncio.run(collected()) == ["frame", "b" + rest]
    rest = "c"
    assert asyncio.run(collected()) == ["frame", "bc"]
    (pause,) = pauses
    assert 0.0 < pause < 10.0 - 0.015


@pytest.mark.parametrize("path", ["/", "/log", "/clients", "/words", "/users", "/review", "/settings"])
def test_a_browser_that_opens_a_page_gets_its_frame_first(
    tmp_path: Path, pauses: list[float], monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(pages, "FRAME_S", 1e6)
    for module in (pages, pacing):
        monkeypatch.setattr(module, "LONG", 1)
    with dashboard(tmp_path) as web:
        plain = web.client.get(path)
        assert (plain.status_code, [pause for pause in pauses if pause]) == (200, [])
        shown = web.client.get(path, headers=NAVIGATION)
        assert (shown.status_code, len([pause for pause in pauses if pause])) == (200, 1)
        assert shown.text.endswith("</html>")


def test_a_page_with_a_short_rest_is_sent_at_once(tmp_path: Path, pauses: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "FRAME_S", 1e6)
    for module in (pages, pacing):
        monkeypatch.setattr(module, "LONG", 10_000_000)
    with dashboard(tmp_path) as web:
        for path in ("/", "/settings"):
            assert web.client.get(path, headers=NAVIGATION).text.endswith("</html>")
    assert pauses == []

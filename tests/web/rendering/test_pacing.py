"""Pages in two pieces: a browser gets the frame, and the rest after a pause; nobody else waits."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gatewayfilter.errors import ClassifyError
from gatewayfilter.web.child_process import ChildProcess
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


def test_a_rest_of_just_the_length_waits_and_never_less_than_no_time(pauses: list[float]) -> None:
    async def collected(length: int) -> list[str]:
        return [part async for part in paced(iter(("frame", "x" * length)), 0.0)]

    for length, waits in ((LONG - 1, []), (LONG, [0.0])):
        assert asyncio.run(collected(length)) == ["frame", "x" * length]
        assert pauses == waits


def assert_whole(page: str) -> None:
    """A page with its frame, once, and its end."""
    assert page.lower().startswith("<!doctype html>")
    assert page.count('<div class="toolbar">') == 1
    assert page.endswith("</html>")


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
        assert_whole(shown.text)


@pytest.mark.parametrize("path", ["/words", "/words/gambling", "/https", "/api"])
def test_a_page_does_not_wait_for_its_child_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    def away(*_: object, **__: object) -> None:
        raise ClassifyError("the child is <away>")

    monkeypatch.setattr(ChildProcess, "run", away)
    with dashboard(tmp_path) as web:
        answer = web.client.get(path)
    frame, _, rest = answer.text.partition('<div class="toolbar">')
    assert (answer.status_code, frame.count('data-wait="Loading …"'), rest.count("</html>")) == (200, 1, 1)
    assert "the child is &lt;away&gt;" in rest


def test_a_page_with_a_short_rest_is_sent_at_once(tmp_path: Path, pauses: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "FRAME_S", 1e6)
    for module in (pages, pacing):
        monkeypatch.setattr(module, "LONG", 10_000_000)
    with dashboard(tmp_path) as web:
        for path in ("/", "/settings"):
            assert_whole(web.client.get(path, headers=NAVIGATION).text)
    assert pauses == []


@pytest.mark.parametrize("is_long", [True, False])
def test_a_page_of_a_refusal_keeps_its_status(
    tmp_path: Path, pauses: list[float], monkeypatch: pytest.MonkeyPatch, *, is_long: bool
) -> None:
    monkeypatch.setattr(pages, "LONG", 1 if is_long else 10_000_000)
    with dashboard(tmp_path) as web:
        answer = web.client.post("/settings", data={"key": "log.retention_days", "value": "x"}, headers=NAVIGATION)
        assert answer.status_code == 422
        assert_whole(answer.text)
    assert len(pauses) <= 1

"""Pages in two pieces: a browser gets the frame, and the rest after a pause; nobody else waits."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.types import Message

from gatewayfilter.web.rendering import paced_response, pages
from gatewayfilter.web.rendering.paced_response import FRAME_END, FRAME_S, LONG, PacedResponse, paced
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

    monkeypatch.setattr(paced_response, "asyncio", Clockwork)
    return made


def sent_by(response: PacedResponse, method: str = "GET") -> list[Message]:
    sent: list[Message] = []

    async def receive() -> Message:
        raise AssertionError("nothing is to be received")

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(response({"type": "http", "method": method}, receive, send))
    return sent


def test_a_rendered_page_is_sent_in_two_pieces_of_the_announced_length(pauses: list[float]) -> None:
    frame, rest = b"<h1>a</h1>" + FRAME_END, b"</div><main>b</main>".ljust(LONG)
    start, first, last = sent_by(PacedResponse(frame + rest, 422))
    assert (start["status"], dict(start["headers"])[b"content-length"]) == (422, str(len(frame + rest)).encode())
    assert (first["body"], first["more_body"], last["body"], last.get("more_body", False)) == (frame, True, rest, False)
    assert pauses == [FRAME_S]


@pytest.mark.parametrize(
    ("page", "method"),
    [(b"<p>a part</p>", "GET"), (b"a" + FRAME_END + bytes(LONG), "HEAD"), (b"a" + FRAME_END + bytes(LONG - 1), "GET")],
)
def test_what_has_no_frame_or_a_short_rest_is_sent_at_once(pauses: list[float], page: bytes, method: str) -> None:
    assert [message.get("body") for message in sent_by(PacedResponse(page), method)] == [None, page]
    assert pauses == []


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
    long, short = pauses
    assert 0.0 < long < 10.0 - 0.015
    assert short == 0.0


@pytest.mark.parametrize("path", ["/", "/log", "/clients", "/words", "/users", "/review", "/settings"])
def test_a_browser_that_opens_a_page_gets_its_frame_first(
    tmp_path: Path, pauses: list[float], monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    for module in (paced_response, pages):
        monkeypatch.setattr(module, "FRAME_S", 1e6)
    monkeypatch.setattr(paced_response, "LONG", 1)
    with dashboard(tmp_path) as web:
        plain = web.client.get(path)
        assert (plain.status_code, [pause for pause in pauses if pause]) == (200, [])
        shown = web.client.get(path, headers=NAVIGATION)
        assert FRAME_END in shown.content
        assert (shown.status_code, len([pause for pause in pauses if pause])) == (200, 1)

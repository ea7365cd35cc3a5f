"""The judgement of pages: which are pages, what blocks, how long a judgement holds, what a failure means."""

import asyncio

import pytest

from gatewayfilter.errors import InspectError
from gatewayfilter.integration.icap import page_judge
from gatewayfilter.integration.icap.page_judge import FAILURE, PageJudge
from gatewayfilter.interfaces import PassedResponse
from gatewayfilter.model import Classification, Reason
from gatewayfilter.settings import GrowthMode, LearnSettings
from gatewayfilter.telemetry import Counters

HARMFUL = Classification("gambling", 42.0, 20.0)


class Inspector:
    """Finds what it is told, and counts what it is asked."""

    def __init__(self, found: Classification | Exception | None) -> None:
        self.found = found
        self.asked = 0
        self.takes_s = 0.0

    async def inspect(self, response: PassedResponse) -> Classification | None:
        del response
        self.asked += 1
        await asyncio.sleep(self.takes_s)
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


class Judging:
    def __init__(
        self,
        found: Classification | Exception | None = HARMFUL,
        learn: LearnSettings | None = None,
        off: frozenset[str] = frozenset(),
        *,
        blocks_failures: bool = False,
    ) -> None:
        self.inspector, self.counters, self.now = Inspector(found), Counters(), 100.0
        self.judge = PageJudge(
            *(self.inspector, learn or LearnSettings(), off, self.counters),
            limit_s=0.05,
            blocks_failures=blocks_failures,
            clock=lambda: self.now,
        )

    async def blocks(self, body: bytes = b"x", status: int = 200, url: str = "http://a.test/", **headers: str) -> bool:
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.judge.judge(PassedResponse(url, status, fields, body, public=False)) is not None


@pytest.mark.parametrize(
    ("status", "kind", "is_page"),
    [
        *((status, "text/html", True) for status in (200, 201, 202, 203, 206, 207, 208, 226, 400, 404, 599)),
        *((status, "text/html", False) for status in (100, 204, 205, 301, 304, 399)),
        *((200, kind, True) for kind in ("Text/HTML; charset=x", "application/xhtml+xml", "text/plain", "image/png, text/html")),
        *((404, kind, False) for kind in ("", "image/png", "text/css", "text/htmlx", "x;text/html")),
    ],
)
def test_which_responses_are_pages(status: int, kind: str, *, is_page: bool) -> None:
    assert PageJudge.is_page(status, kind) is is_page


def test_the_last_type_that_names_a_page_counts() -> None:
    assert PageJudge.page_type("text/plain, text/html;a=b , image/png") == "text/html;a=b"
    assert PageJudge.page_type("image/png") == ""


async def test_a_harmful_page_is_blocked_and_remembered_for_a_minute() -> None:
    judging = Judging()
    verdict = await judging.judge.judge(PassedResponse("http://a.test/", 200, {}, b"x", public=False))
    assert verdict is not None
    assert (verdict.blocked, verdict.reason, verdict.category, verdict.unknown) == (True, Reason.LEARNED, "gambling", True)
    judging.now += 59.9
    assert await judging.blocks()
    assert (judging.inspector.asked, judging.counters["inspected"], judging.counters["icap_repeated"]) == (1, 1, 1)
    judging.now += 0.1
    assert await judging.blocks()
    assert (judging.inspector.asked, judging.counters["inspected"], judging.counters["icap_repeated"]) == (2, 2, 1)


async def test_another_page_is_judged_by_itself() -> None:
    judging = Judging(None)
    assert not await judging.blocks()
    assert not await judging.blocks(b"y")
    assert not await judging.blocks(status=404)
    assert not await judging.blocks(url="http://b.test/")
    assert not await judging.blocks(content_type="text/plain")
    assert not await judging.blocks(content_encoding="gzip")
    assert judging.inspector.asked == 6
    assert not await judging.blocks()
    assert (judging.inspector.asked, judging.counters["icap_repeated"]) == (6, 1)


async def test_the_oldest_judgement_is_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_judge, "_MOST_REMEMBERED", 2)
    judging = Judging()
    for body in (b"1", b"2", b"3", b"3", b"2"):
        await judging.blocks(body)
    assert judging.inspector.asked == 3
    await judging.blocks(b"1")
    assert judging.inspector.asked == 4


async def test_a_page_that_is_judged_again_is_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_judge, "_MOST_REMEMBERED", 2)
    judging = Judging()
    for moment, body in ((0.0, b"1"), (1.0, b"2"), (60.0, b"1"), (60.0, b"3")):
        judging.now = moment
        await judging.blocks(body)
    assert judging.inspector.asked == 4
    await judging.blocks(b"1")
    assert judging.inspector.asked == 4
    await judging.blocks(b"2")
    assert judging.inspector.asked == 5


@pytest.mark.parametrize(
    ("found", "learn", "off", "blocks"),
    [
        (HARMFUL, LearnSettings(), frozenset(), True),
        (HARMFUL, LearnSettings(), frozenset({"ads"}), True),
        (HARMFUL, LearnSettings(), frozenset({"gambling"}), False),
        (HARMFUL, LearnSettings(mode=GrowthMode.REVIEW), frozenset(), False),
        (Classification("", 10.0, 20.0), LearnSettings(), frozenset(), False),
        (None, LearnSettings(), frozenset(), False),
    ],
)
async def test_what_blocks(found: Classification | None, learn: LearnSettings, off: frozenset[str], *, blocks: bool) -> None:
    assert await Judging(found, learn, off).blocks() is blocks


@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("how", ["fault", "late", "encodings"])
async def test_a_failure_means_what_is_set_and_is_not_remembered(how: str, *, blocks: bool) -> None:
    judging = Judging(InspectError("a fault") if how == "fault" else None, blocks_failures=blocks)
    judging.inspector.takes_s = 5.0 if how == "late" else 0.0
    for number in (1, 2):
        found = await judging.judge.judge(
            PassedResponse(
                "http://a.test/",
                200,
                {"content-encoding": ", ".join(["gzip"] * 11)} if how == "encodings" else {},
                b"x",
                public=False,
            )
        )
        assert found == (FAILURE if blocks else None)
        assert (judging.counters["inspect_failed"], judging.counters["inspected"]) == (number, 0)
    assert judging.inspector.asked == (0 if how == "encodings" else 2)

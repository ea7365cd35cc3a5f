"""Pages that are looked at before they are delivered, and pages that are judged as they pass."""

import asyncio
from collections.abc import AsyncIterator
from ipaddress import ip_address, ip_network
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
from mitmproxy.test import tflow

from gatewayfilter.addresses.links import Link, Links
from gatewayfilter.config import Settings
from gatewayfilter.model import ResponseChange
from gatewayfilter.proxy.response import inspection
from gatewayfilter.proxy.response.inspection import ResponseInspection
from gatewayfilter.proxy.response.page_capture import OpenNetworks
from gatewayfilter.telemetry import Counters
from tests.case_tables import all_cases
from tests.proxy.edit_origin import ENCODERS, Answer, EditOrigin, edit_origin
from tests.proxy.proxy_fakes import FakePassed, Gateway

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

DOCUMENT = {"sec-fetch-dest": "document", "sec-fetch-mode": "navigate"}
HTML = {"content-type": "text/html"}
HARMFUL = b"<html><head></head><body>casino</body></html>"
FINE = b"<html><head></head><body>garden</body></html>"


@pytest.fixture
async def site() -> AsyncIterator[EditOrigin]:
    async with edit_origin() as origin:
        yield origin


async def fetch(gateway: Gateway, client: aiohttp.ClientSession, url: str, **headers: str) -> tuple[int, bytes]:
    async with client.get(url, proxy=gateway.url, headers={**DOCUMENT, **headers}) as response:
        return response.status, await response.read()


@pytest.mark.parametrize("encoding", ENCODERS)
@pytest.mark.parametrize("pieces", [1, 5])
async def test_a_harmful_page_never_arrives(
    encoding: str, pieces: int, start_gateway: Any, site: EditOrigin, client: aiohttp.ClientSession
) -> None:
    site.answers["/unknown/harmful"] = Answer(HARMFUL, HTML, encoding=encoding, pieces=pieces)
    site.answers["/unknown/fine"] = Answer(FINE, HTML, encoding=encoding, pieces=pieces)
    async with start_gateway(unknown="inspect") as gateway:
        status, body = await fetch(gateway, client, f"{site.url}/unknown/harmful")
        assert status == 403
        assert b"gambling" in body
        assert await fetch(gateway, client, f"{site.url}/unknown/fine") == (200, ENCODERS[encoding](FINE))
        assert [seen.headers.get("content-encoding", "") for seen in gateway.inspect.seen] == [encoding] * 2
        assert [seen.public for seen in gateway.inspect.seen] == [True, True]
        assert gateway.counters["inspected"] == 2
        assert gateway.offers.urls == []  # what was looked at is not fetched again
        assert [record.reason for record in gateway.records] == ["unknown", "learned", "unknown"]
        assert gateway.counters["requests"] == 2


async def test_nobody_else_waits(start_gateway: Any, site: EditOrigin, client: aiohttp.ClientSession) -> None:
    site.answers["/unknown/slow"] = Answer(b"<html>slow casino", HTML)
    async with start_gateway(unknown="inspect", inspect_ms=20_000) as gateway:
        slow = asyncio.ensure_future(fetch(gateway, client, f"{site.url}/unknown/slow"))
        assert (await fetch(gateway, client, f"{site.url}/fine"))[0] == 200
        await gateway.inspect.began.wait()
        assert (await fetch(gateway, client, f"{site.url}/unknown/other"))[0] == 200
        assert not slow.done()
        gateway.inspect.gate.set()
        assert (await slow)[0] == 403


@pytest.mark.parametrize(("on_error", "status"), [("allow", 200), ("block", 503)])
@pytest.mark.parametrize("body", [b"<html>broken", b"<html>slow"])
async def test_a_page_that_cannot_be_looked_at_goes_by_on_error(
    body: bytes, on_error: str, status: int, start_gateway: Any, site: EditOrigin, client: aiohttp.ClientSession
) -> None:
    site.answers["/unknown"] = Answer(body, HTML)
    async with start_gateway(unknown="inspect", inspect_ms=50, on_error=on_error) as gateway:
        assert (await fetch(gateway, client, f"{site.url}/unknown"))[0] == status
        assert gateway.counters["inspect_failed"] == 1
        assert gateway.counters["hook_errors"] == 0
        assert gateway.offers.urls == [f"{site.url}/unknown"]


async def test_a_long_page_streams_on_and_is_fetched_later(
    start_gateway: Any, site: EditOrigin, client: aiohttp.ClientSession
) -> None:
    long = b"<html><head></head>" + b"casino " * 400_000
    site.answers["/unknown"] = Answer(long, HTML, pieces=40)
    async with start_gateway(unknown="inspect") as gateway:
        gateway.changes.responses["/unknown"] = ResponseChange(style="p{}")
        status, body = await fetch(gateway, client, f"{site.url}/unknown")
        assert (status, body) == (200, long.replace(b"<head>", b"<head><style>p{}</style>"))
        assert gateway.inspect.seen == []
        assert gateway.offers.urls == [f"{site.url}/unknown"]


async def test_a_page_is_looked_at_as_it_came_and_delivered_as_it_is_changed(
    start_gateway: Any, site: EditOrigin, client: aiohttp.ClientSession
) -> None:
    site.answers["/unknown"] = Answer(FINE, {**HTML, "set-cookie": "a=b"}, encoding="zstd")
    async with start_gateway(unknown="inspect") as gateway:
        gateway.changes.responses["/unknown"] = ResponseChange(style="p{}", remove_headers=("set-cookie",))
        _, body = await fetch(gateway, client, f"{site.url}/unknown")
        assert body == FINE.replace(b"<head>", b"<head><style>p{}</style>")
        (seen,) = gateway.inspect.seen
        assert seen.body == ENCODERS["zstd"](FINE)
        assert seen.headers["content-encoding"] == "zstd"
        assert not seen.public


@pytest.mark.parametrize(
    ("answer", "headers"),
    [
        (Answer(HARMFUL, {"content-type": "image/png"}), {}),
        (Answer(HARMFUL, HTML, 404), {}),
        (Answer(HARMFUL, HTML), {"sec-fetch-dest": "script"}),
    ],
)
async def test_only_pages_are_looked_at(
    answer: Answer, headers: dict[str, str], start_gateway: Any, site: EditOrigin, client: aiohttp.ClientSession
) -> None:
    site.answers["/unknown"] = answer
    async with start_gateway(unknown="inspect") as gateway:
        assert await fetch(gateway, client, f"{site.url}/unknown", **headers) == (answer.status, HARMFUL)
        assert gateway.inspect.seen == []


@pytest.mark.parametrize(
    ("status", "headers"), [(201, {}), (202, {}), (203, {}), (206, {"range": "bytes=0-"}), (206, {}), (207, {}), (299, {})]
)
async def test_a_page_is_looked_at_whatever_its_client_asks_for_of_it(
    status: int, headers: dict[str, str], start_gateway: Any, site: EditOrigin, client: aiohttp.ClientSession
) -> None:
    """Nothing is learned of such an answer."""
    site.answers["/unknown"] = Answer(HARMFUL, HTML, status)
    async with start_gateway(unknown="inspect") as gateway:
        assert (await fetch(gateway, client, f"{site.url}/unknown", **headers))[0] == 403
        assert [seen.public for seen in gateway.inspect.seen] == [False]


PRIVATE: list[tuple[dict[str, str], dict[str, str]]] = [
    ({}, {"cookie": "a=b"}),
    ({}, {"authorization": "Basic eA=="}),
    ({}, {"x-api-key": "a"}),
    ({}, {"x-auth-token": "a"}),
    ({}, {"x-forwarded-for": "10.0.0.1"}),
    ({}, {"user-agent": "a" * 6000}),
    ({"cache-control": "no-store"}, {}),
    ({"cache-control": "max-age=3, Private"}, {}),
    ({"set-cookie": "a=b"}, {}),
    ({"vary": "accept, Cookie"}, {}),
]


@pytest.mark.parametrize(("answer", "asked"), PRIVATE)
async def test_private_pages_are_judged_but_nothing_is_learned_of_them(
    answer: dict[str, str], asked: dict[str, str], start_gateway: Any, site: EditOrigin, client: aiohttp.ClientSession
) -> None:
    site.answers["/unknown"] = Answer(HARMFUL, {**HTML, **answer})
    async with start_gateway(unknown="inspect", passed=FakePassed()) as gateway:
        assert (await fetch(gateway, client, f"{site.url}/unknown", **asked))[0] == 403
        assert [seen.public for seen in gateway.inspect.seen] == [False]
        assert gateway.passed.seen == []


@pytest.mark.parametrize(("answer", "asked"), PRIVATE)
async def test_private_pages_do_not_leave_the_proxy(
    answer: dict[str, str], asked: dict[str, str], start_gateway: Any, site: EditOrigin, client: aiohttp.ClientSession
) -> None:
    site.answers["/unknown"] = Answer(FINE, {**HTML, **answer})
    async with start_gateway(passed=FakePassed()) as gateway:
        assert await fetch(gateway, client, f"{site.url}/unknown", **asked) == (200, FINE)
        assert gateway.passed.seen == []
        assert gateway.offers.urls == ([] if "authorization" in asked else [f"{site.url}/unknown"])


async def test_a_public_page_is_judged_as_it_passed_instead_of_fetched(
    start_gateway: Any, site: EditOrigin, client: aiohttp.ClientSession
) -> None:
    site.answers["/unknown"] = Answer(FINE, HTML, encoding="br", pieces=3)
    async with start_gateway(passed=FakePassed()) as gateway:
        gateway.changes.responses["/unknown"] = ResponseChange(style="p{}")
        for _ in range(2):
            _, body = await fetch(gateway, client, f"{site.url}/unknown")
            assert b"<style>" in body
        (passed,) = gateway.passed.seen  # once a minute
        assert (passed.url, passed.status, passed.body) == (f"{site.url}/unknown", 200, ENCODERS["br"](FINE))
        assert passed.headers == {"content-type": "text/html", "content-encoding": "br"}
        assert "sec-fetch-dest document" in passed.said  # a page may repeat what it is asked with
        assert gateway.offers.urls == []
        assert gateway.counters["captures_queued"] == 1


async def test_what_does_not_fit_is_fetched(start_gateway: Any, site: EditOrigin, client: aiohttp.ClientSession) -> None:
    site.answers["/unknown/long"] = Answer(b"x" * 2_100_000, HTML, pieces=30)
    site.answers["/unknown/moved"] = Answer(b"", {"location": "/unknown"}, 302)
    async with start_gateway(passed=FakePassed()) as gateway:
        assert len((await fetch(gateway, client, f"{site.url}/unknown/long"))[1]) == 2_100_000
        gateway.passed.full = True
        await fetch(gateway, client, f"{site.url}/unknown/full")
        async with client.get(f"{site.url}/unknown/moved", proxy=gateway.url, headers=DOCUMENT, allow_redirects=False):
            pass
        assert gateway.offers.urls == [f"{site.url}/unknown/{name}" for name in ("long", "full", "moved")]
        assert gateway.counters["captures_dropped"] == 1


@all_cases(
    ("address", "is_open"),
    [
        ("127.0.0.1", True),
        ("192.168.1.1", False),
        ("8.8.8.8", True),
        ("::ffff:10.0.0.1", False),
        ("fe80::1%eth0", False),
        ("9.9.9.9", False),
        ("::ffff:9.9.9.9", False),
        ("2606:4700::1111", False),
        ("2606:4700:1::1111", True),
        ("64:ff9b::a00:1", False),
        ("168.63.129.16", False),
        ("x", False),
    ],
)
def test_nothing_is_learned_of_inner_addresses(address: str, is_open: bool) -> None:  # noqa: FBT001
    links = Links(own=frozenset({ip_address("9.9.9.9")}), on_link=(Link(ip_network("2606:4700::/64"), 2),))
    assert (address in OpenNetworks(("127.0.0.0/8",), lambda: links)) is is_open


def test_no_more_responses_are_kept_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each one that was judged, gave up or failed makes room for another one."""
    monkeypatch.setattr(inspection, "MOST_INSPECTED", 2)
    held: list[Any] = []
    monkeypatch.setattr(inspection, "hold_response", lambda _, stream, release: held.append((stream, release)))
    counters, streams, queued = Counters(), [object()], list[object]()
    answerer: Any = SimpleNamespace(stream_of=lambda _: streams[0])
    reporter: Any = SimpleNamespace(queue_page=queued.append)
    fake: Any = SimpleNamespace()
    kept = ResponseInspection(Settings(), fake, answerer, fake, counters, reporter)

    def keep() -> tuple[bool, Any]:
        flow = tflow.tflow(resp=True)
        assert flow.response is not None
        flow.response.stream = True
        return kept.keep(flow, flow.response, fake, fake), flow

    (first, one), (second, two), (third, full) = keep(), keep(), keep()
    assert (first, second, third, counters["inspect_failed"]) == (True, True, False, 1)
    assert (one.response.stream, full.response.stream) == (False, True)
    assert kept.finish(full) is None
    kept.forget(full)
    assert keep()[0] is False
    kept.forget(one)
    kept.forget(one)
    assert [keep()[0], keep()[0]] == [True, False]
    (_, release), *_ = held[1:]
    release()
    assert (len(queued), kept.finish(two)) == (1, None)
    streams[0] = None
    assert keep()[0] is False
    streams[0] = object()
    assert [keep()[0], keep()[0]] == [True, False]
    assert counters["inspect_failed"] == 5

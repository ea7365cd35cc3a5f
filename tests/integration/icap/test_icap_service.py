"""The ICAP services over streams in memory: which answer a client takes, what is read of a body, what is decided by."""

import asyncio
from typing import Any

import pytest

from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.integration.icap import service as service_module
from gatewayfilter.integration.icap.messages import LONGEST_HEAD, IcapError, read_request
from gatewayfilter.integration.icap.page_judge import PageJudge
from gatewayfilter.integration.icap.service import IcapService
from gatewayfilter.interfaces import InternalAnswer, PassedResponse
from gatewayfilter.model import Classification, Request, Verdict
from gatewayfilter.settings import LearnSettings
from tests.integration.integration_engine import Records, decider_over

HTML = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
NO_CONTENT = b'ICAP/1.0 204 No Content\r\nISTag: "gatewayfilter-0"\r\nEncapsulated: null-body=0\r\n\r\n'
CONTINUE = b"ICAP/1.0 100 Continue\r\n\r\n"
END = b"0\r\n\r\n"


class Writer:
    """Keeps what is written."""

    def __init__(self) -> None:
        self.data = b""
        self.drains = 0

    def write(self, data: bytes) -> None:
        self.data += data

    async def drain(self) -> None:
        self.drains += 1


class Inspector:
    def __init__(self) -> None:
        self.seen: list[PassedResponse] = []

    async def inspect(self, response: PassedResponse) -> Classification | None:
        self.seen.append(response)
        return Classification("gambling", 42.0, 20.0) if b"casino" in response.body else None


def _answer(request: Request, verdict: Verdict, accept_language: str) -> InternalAnswer:
    return InternalAnswer(403, {}, f"{verdict.reason} {request.url.text} {accept_language}".encode())


class Served:
    """A service, and what it was given and gave."""

    def __init__(self, engine: FilterEngine, *, judges: bool = True) -> None:
        self.records, self.inspector, self.writer = Records(), Inspector(), Writer()
        self.decider, self.counters = decider_over(engine, self.records)
        judge = PageJudge(
            self.inspector, LearnSettings(), frozenset(), self.counters, limit_s=20, blocks_failures=False
        )  # fmt: skip
        self.service = IcapService(self.decider, judge if judges else None, _answer, self.counters, 64)
        self.left = b""

    async def ask(self, data: bytes) -> tuple[bytes, bool]:
        reader = asyncio.StreamReader(limit=LONGEST_HEAD)
        reader.feed_data(data)
        reader.feed_eof()
        icap = await read_request(reader)
        assert icap is not None
        self.writer = Writer()
        writer: Any = self.writer
        usable = await self.service.answer(icap, reader, writer)
        self.left = await reader.read()
        return self.writer.data, usable


def message(
    method: str = "RESPMOD",
    *fields: str,
    url: str = "http://garden.test/",
    response: str = HTML,
    body: bytes | None = b"",
    http: str = "",
) -> bytes:
    """An ICAP request; `body` as it is sent, chunks and all."""
    head = f"GET {url} HTTP/1.1\r\nHost: h.test\r\nAccept-Language: en\r\n{http}\r\n"
    response = response if method == "RESPMOD" else ""
    kind = "null" if body is None else "res" if response else "req"
    parts = f"Encapsulated: req-hdr=0, {f'res-hdr={len(head)}, ' if response else ''}{kind}-body={len(head + response)}"
    lines = [f"{method} icap://i/{method.lower()} ICAP/1.0", *fields, parts]
    return ("\r\n".join(lines) + "\r\n\r\n" + head + response).encode() + (body or b"")


def chunked(*pieces: bytes, last: bytes = END) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + last


async def test_options_say_what_is_served_and_drop_a_body(listed: FilterEngine) -> None:
    served = Served(listed)
    for name, preview in (("reqmod", b"Preview: 0\r\n"), ("respmod", b"Preview: 4096\r\n")):
        head = f"OPTIONS icap://i/{name} ICAP/1.0\r\nEncapsulated: opt-body=0\r\n\r\n".encode()
        found, usable = await served.ask(head + chunked(b"a", b"b") + b"NEXT")
        assert (usable, served.left) == (True, b"NEXT")
        assert preview in found
        assert f"Methods: {name.upper()}\r\n".encode() in found
        assert b"Max-Connections: 64\r\n" in found


@pytest.mark.parametrize(
    ("fields", "body", "answer"),
    [
        (("Allow: 204",), chunked(b"abc") + b"N", NO_CONTENT),
        (("Allow: 204, 206",), chunked(b"abc") + b"N", NO_CONTENT),
        (("Preview: 3",), chunked(b"abc") + b"N", NO_CONTENT),
        (("Preview: 0",), END + b"N", NO_CONTENT),
    ],
)
async def test_a_request_that_stays_as_it_is(fields: tuple[str, ...], body: bytes, answer: bytes, listed: FilterEngine) -> None:
    served = Served(listed)
    assert await served.ask(message("REQMOD", *fields, body=body)) == (answer, True)
    assert served.left == b"N"
    assert (served.counters["icap_requests"], served.counters["icap_responses"]) == (1, 0)


@pytest.mark.parametrize("method", ["REQMOD", "RESPMOD"])
@pytest.mark.parametrize(("allow", "status"), [("", 200), ("Allow: 206", 206)])
async def test_what_is_sent_back(method: str, allow: str, status: int, listed: FilterEngine) -> None:
    served = Served(listed)
    fields = [allow] if allow else []
    found, usable = await served.ask(message(method, *fields, body=chunked(b"ab", b"c") + b"N"))
    head, _, rest = found.partition(b"\r\n\r\n")
    kind = "req" if method == "REQMOD" else "res"
    own = message("REQMOD", body=b"").partition(b"\r\n\r\n")[2] if method == "REQMOD" else HTML.encode()
    assert head.startswith(b"ICAP/1.0 %d " % status)
    assert head.endswith(f"Encapsulated: {kind}-hdr=0, {kind}-body={len(own)}".encode())
    bodies = b"0; use-original-body=0\r\n\r\n" if allow else chunked(b"ab", b"c") if method == "REQMOD" else chunked(b"abc")
    assert rest == own + bodies
    assert served.writer.drains == (0 if allow or method == "RESPMOD" else 2), "it waits for the client piece by piece"
    assert (usable, served.left) == (True, b"N")
    empty, _ = await served.ask(message(method, *fields, body=None))
    assert empty.startswith(b"ICAP/1.0 200 ")
    assert empty.endswith(own)
    assert b"null-body=" in empty


async def test_a_page_behind_its_preview_is_judged_whole(listed: FilterEngine) -> None:
    served = Served(listed)
    page = chunked(b"ca") + chunked(b"sino") + b"N"
    found, usable = await served.ask(message("RESPMOD", "Preview: 2", body=page))
    assert found.startswith(CONTINUE + b"ICAP/1.0 200")
    assert b"learned http://garden.test/ en" in found
    assert (usable, served.left, served.writer.drains) == (True, b"N", 1)
    (seen,) = served.inspector.seen
    assert (seen.body, seen.status, seen.url, seen.public) == (b"casino", 200, "http://garden.test/", False)
    assert seen.headers["content-type"] == "text/html"
    whole, _ = await served.ask(message("RESPMOD", "Preview: 9", body=chunked(b"bean", last=b"0; ieof\r\n\r\n") + b"N"))
    assert whole == NO_CONTENT
    assert served.left == b"N"
    went, _ = await served.ask(message("RESPMOD", "Preview: 2", body=chunked(b"be") + chunked(b"an", b"s") + b"N"))
    assert went == CONTINUE + went[len(CONTINUE) :]
    assert went.endswith(HTML.encode() + chunked(b"beans"))
    assert len(served.records.records) == 1


async def test_a_page_that_is_too_long_passes_with_all_of_it(listed: FilterEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_module, "LARGEST_PAGE", 6)
    served = Served(listed)
    assert b"learned" in (await served.ask(message(body=chunked(b"cas", b"ino"))))[0]
    found, usable = await served.ask(message(body=chunked(b"casi", b"nos", b"more") + b"N"))
    assert found.endswith(HTML.encode() + chunked(b"casinos", b"more"))
    assert (usable, served.left, len(served.inspector.seen)) == (True, b"N", 1)


@pytest.mark.parametrize(
    ("response", "judged"),
    [
        (HTML, True),
        (HTML.replace("200", "404"), True),
        (HTML.replace("200", "304"), False),
        (HTML.replace("200", "20"), False),
        (HTML.replace("200", "20x"), False),
        (HTML.replace("200", "2000"), False),
        (HTML.replace("text/html", "image/png"), False),
        (HTML.replace("\r\n\r\n", "\r\nContent-Length: 2000000\r\n\r\n"), True),
        (HTML.replace("\r\n\r\n", "\r\nContent-Length: 2000001\r\n\r\n"), False),
        (HTML.replace("\r\n\r\n", "\r\nContent-Length: 999999999999\r\n\r\n"), False),
        (HTML.replace("\r\n\r\n", "\r\nContent-Length: 1000000000000\r\n\r\n"), True),
        (HTML.replace("\r\n\r\n", "\r\nContent-Length: many\r\n\r\n"), True),
    ],
)
async def test_which_responses_are_judged(response: str, listed: FilterEngine, *, judged: bool) -> None:
    served = Served(listed)
    found, usable = await served.ask(message("RESPMOD", "Allow: 204", response=response, body=chunked(b"casino") + b"N"))
    assert (b"learned" in found, len(served.inspector.seen), found == NO_CONTENT) == (judged, int(judged), not judged)
    assert (usable, served.left) == (True, b"N")
    assert (served.counters["icap_requests"], served.counters["icap_responses"]) == (0, 1)


async def test_without_a_judge_a_body_or_a_response_nothing_is_judged(listed: FilterEngine) -> None:
    assert await Served(listed, judges=False).ask(message("RESPMOD", "Allow: 204", body=chunked(b"casino"))) == (NO_CONTENT, True)
    served = Served(listed)
    assert await served.ask(message("RESPMOD", "Allow: 204", body=None)) == (NO_CONTENT, True)
    assert await served.ask(message("RESPMOD", "Allow: 204", response="", body=chunked(b"casino"))) == (NO_CONTENT, True)
    with pytest.raises(IcapError):
        await served.ask(message("RESPMOD", response="", body=chunked(b"casino")))
    assert served.inspector.seen == []


async def test_of_a_blocked_message_so_much_is_read_that_the_connection_can_go_on(
    listed: FilterEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_module, "MOST_DRAINED", 6)
    for method in ("REQMOD", "RESPMOD"):
        served = Served(listed)
        found, usable = await served.ask(message(method, url="http://blocked.test/", body=chunked(b"abc", b"def") + b"N"))
        assert (usable, served.left, b"Connection: close" in found) == (True, b"N", False)
        assert b"blacklist http://blocked.test/ en" in found
        found, usable = await served.ask(message(method, url="http://blocked.test/", body=chunked(b"abc", b"defg", b"h") + b"N"))
        assert (usable, b"Connection: close" in found) == (False, True)
        assert served.left == b"1\r\nh\r\n0\r\n\r\nN"
        assert [verdict.reason.value for _, verdict in served.records.records] == ["blacklist"] * 2
        assert served.counters["blocked"] == 2


@pytest.mark.parametrize("method", ["REQMOD", "RESPMOD"])
async def test_what_has_no_url_is_refused(method: str, listed: FilterEngine) -> None:
    served = Served(listed)
    found, usable = await served.ask(message(method, url="nowhere", body=chunked(b"abc") + b"N"))
    assert found.endswith(b"c\r\nbad request\n\r\n0\r\n\r\n")
    assert b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\ncache-control: no-store\r\n" in found
    assert (usable, served.left) == (True, b"N")


@pytest.mark.parametrize(
    ("first", "status"),
    [
        ("REQMOD icap://i/other", 404),
        ("RESPMOD icap://i/reqmod", 405),
        ("REQMOD icap://i/respmod", 405),
        ("X icap://i/reqmod", 405),
        ("REQMOD icap://i/reqmod", 400),
    ],
)
async def test_what_is_not_served(first: str, status: int, listed: FilterEngine) -> None:
    with pytest.raises(IcapError) as refused:
        await Served(listed).ask(f"{first} ICAP/1.0\r\nEncapsulated: null-body=0\r\n\r\n".encode())
    assert refused.value.status == status


@pytest.mark.parametrize(
    ("url", "fields", "http", "text", "client", "user", "offered"),
    [
        ("/a", (), "", "http://h.test/a", "", "", True),
        ("http://garden.test/\xe4", (), "", "http://garden.test/%E4", "", "", True),
        ("http://garden.test/\x80\x7f", (), "", "http://garden.test/%80%7F", "", "", True),
        ("http://garden.test/", ("X-Client-IP: 1.2.3.4",), "", "http://garden.test/", "1.2.3.4", "", True),
        ("http://garden.test/", ("X-Client-Username: kim",), "", "http://garden.test/", "", "kim", True),
        ("http://garden.test/", (), "Range: bytes=0-1\r\n", "http://garden.test/", "", "", False),
        ("http://garden.test/", (), "Authorization: x\r\n", "http://garden.test/", "", "", False),
        ("http://garden.test/", (), "Accept: image/png\r\n", "http://garden.test/", "", "", False),
        ("http://garden.test/", (), "Sec-Fetch-Dest: image\r\n", "http://garden.test/", "", "", False),
    ],
)  # fmt: skip
async def test_what_is_decided_by(
    url: str, fields: tuple[str, ...], http: str, text: str, client: str, user: str, listed: FilterEngine, *, offered: bool
) -> None:
    served = Served(listed)
    raw = message("REQMOD", "Allow: 204", *fields, url=url, body=None, http=http)
    for mark in ("\xe4", "\x80"):  # one byte of the head, not two
        raw = raw.replace(mark.encode(), mark.encode("latin-1"))
    assert await served.ask(raw) == (NO_CONTENT, True)
    ((request, _),) = served.records.records
    assert (request.url.text, request.client, request.user) == (text, client, user)
    assert bool(served.records.offers) is offered


@pytest.mark.parametrize(
    "line", ["GET http://garden.test/ casino HTTP/1.1", "GET http://garden.test/", "GET http://garden.test/ ICAP/1.0"]
)
async def test_a_request_line_is_one(line: str, listed: FilterEngine) -> None:
    head = f"{line}\r\nHost: h.test\r\n\r\n"
    with pytest.raises(IcapError):
        await Served(listed).ask(
            f"REQMOD icap://i/reqmod ICAP/1.0\r\nEncapsulated: req-hdr=0, null-body={len(head)}\r\n\r\n{head}".encode()
        )

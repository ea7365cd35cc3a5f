"""The two ICAP services: `reqmod` decides requests, `respmod` has pages judged that are on no list."""

import asyncio
from typing import Final, Protocol

from gatewayfilter.integration.icap import answers
from gatewayfilter.integration.icap.messages import ChunkedBody, HttpHead, IcapError, IcapRequest
from gatewayfilter.integration.icap.page_judge import PageJudge
from gatewayfilter.integration.request_decider import AskedRequest, RequestDecider
from gatewayfilter.interfaces import InternalAnswer, PassedResponse
from gatewayfilter.model import Request, Verdict
from gatewayfilter.telemetry import Counters

LARGEST_PAGE: Final = 2_000_000
"""Bytes of a page that is judged, as they are sent; a longer one passes."""
PREVIEW: Final = 4_096
MOST_DRAINED: Final = 1_000_000
"""Bytes of a blocked message that are read, so that the connection can be used further."""


class AnswerBlocked(Protocol):
    """Makes the answers to blocked requests."""

    def __call__(self, request: Request, verdict: Verdict, accept_language: str) -> InternalAnswer:
        """Returns the block page, or what suits the resource type."""
        ...


class IcapService:
    """Answers one request at a time of a connection.

    Args:
        decider: decides requests.
        judge: judges pages; `None` to have all pass that are on no list.
        answer_blocked: makes block pages.
        counters: `icap_requests`, `icap_responses`.
        connections: how many a client may open.
    """

    def __init__(
        self,
        decider: RequestDecider,
        judge: PageJudge | None,
        answer_blocked: AnswerBlocked,
        counters: Counters,
        connections: int,
    ) -> None:
        self._decider = decider
        self._judge = judge
        self._answer_blocked = answer_blocked
        self._counters = counters
        self._connections = connections
        self.tag = "gatewayfilter-0"

    async def answer(self, icap: IcapRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answers a request. Returns whether the connection can be used further.

        Raises:
            IcapError: it is malformed, or for no service of ours.
            ConnectionError: the connection broke.
        """
        exchange = _Exchange(icap, ChunkedBody(reader), writer, self.tag)
        method = {"reqmod": "REQMOD", "respmod": "RESPMOD"}.get(icap.service)
        if method is None:
            raise IcapError(404, "no such service: there are reqmod and respmod")
        if icap.method == "OPTIONS":
            await exchange.drain()
            writer.write(answers.options(self.tag, method, PREVIEW if method == "RESPMOD" else 0, self._connections))
            return True
        if icap.method != method:
            raise IcapError(405, f"{icap.service} serves {method}")
        if icap.request is None:  # nothing to decide by: the client's own rule for failures applies
            raise IcapError(400, "no HTTP request head")
        if method == "REQMOD":
            return await self._request(exchange, icap.request)
        return await self._response(exchange, icap.request)

    async def _request(self, exchange: "_Exchange", http: HttpHead) -> bool:
        self._counters.add("icap_requests")
        decision = self._decider.decide(_asked(exchange.icap, http))
        if not decision.verdict.blocked or decision.request is None:
            return await (exchange.unchanged() if decision.request is not None else exchange.refuse())
        return await exchange.page(self._page(decision.request, decision.verdict, http))

    async def _response(self, exchange: "_Exchange", http: HttpHead) -> bool:
        self._counters.add("icap_responses")
        decision = self._decider.peek(_asked(exchange.icap, http))
        request, response = decision.request, exchange.icap.response
        if request is None:
            return await exchange.refuse()
        if decision.verdict.blocked:
            self._decider.block(request, decision.verdict)
            return await exchange.page(self._page(request, decision.verdict, http))
        if not decision.verdict.unknown or response is None or self._judge is None or not self._is_judged(exchange, response):
            return await exchange.unchanged()
        body = await exchange.body(LARGEST_PAGE)
        if body is None:
            return await exchange.unchanged()
        status = int(response.start[1])
        fields = response.fields | {"content-type": PageJudge.page_type(response.fields.get("content-type", ""))}
        verdict = await self._judge.judge(PassedResponse(request.url.text, status, fields, body, public=False))
        if verdict is None:
            return await exchange.unchanged()
        self._decider.block(request, verdict)
        return await exchange.page(self._page(request, verdict, http))

    def _is_judged(self, exchange: "_Exchange", response: HttpHead) -> bool:
        status = response.start[1]
        if not (status.isdecimal() and len(status) == 3) or not exchange.icap.has_body:
            return False
        length = response.fields.get("content-length", "0")
        fits = not length.isdecimal() or len(length) > 12 or int(length) <= LARGEST_PAGE
        return fits and PageJudge.is_page(int(status), response.fields.get("content-type", ""))

    def _page(self, request: Request, verdict: Verdict, http: HttpHead) -> InternalAnswer:
        return self._answer_blocked(request, verdict, http.fields.get("accept-language", ""))


class _Exchange:
    """One request and its answer: which answers the client takes, and what has been read of its body."""

    def __init__(self, icap: IcapRequest, body: ChunkedBody, writer: asyncio.StreamWriter, tag: str) -> None:
        self.icap = icap
        self._body = body
        self._writer = writer
        self._tag = tag
        self._read: bytes | bytearray = bytearray()
        self._in_preview = icap.preview is not None
        if not icap.has_body:
            body.ended = True

    async def body(self, most: int) -> bytes | None:
        """Returns the whole body, `None` when it is longer; what was read is kept for `unchanged`."""
        read = bytearray()  # not a list of pieces: chunks of two bytes would take 30 times their size
        self._read = read
        while True:
            while piece := await self._body.piece():
                read += piece
                if len(read) > most:
                    return None
            if not self._goes_on():
                self._read = whole = bytes(read)
                return whole
            self._writer.write(answers.CONTINUE)
            await self._writer.drain()

    def _goes_on(self) -> bool:
        """Returns whether more of the body follows the preview, and begins with it."""
        if not self._in_preview or self._body.is_whole:
            return False
        self._in_preview = False
        self._body.go_on()
        return True

    async def unchanged(self) -> bool:
        """Answers that the message stays as it is: without sending it back, where the client takes that."""
        icap = self.icap
        if self._in_preview:
            while await self._body.piece():
                pass
            self._writer.write(answers.head(204, self._tag, "null-body=0"))
            return True
        if "204" in icap.allow:
            self._read = b""
            await self.drain()
            self._writer.write(answers.head(204, self._tag, "null-body=0"))
            return True
        http, kind = (icap.response, "res") if icap.method == "RESPMOD" else (icap.request, "req")
        if http is None:
            raise IcapError(400, "nothing to send back")
        if "206" in icap.allow and icap.has_body:
            self._read = b""
            await self.drain()
            self._writer.write(answers.unchanged_head(206, self._tag, http, kind, has_body=True) + answers.ORIGINAL_BODY)
            return True
        self._writer.write(answers.unchanged_head(200, self._tag, http, kind, has_body=icap.has_body))
        if icap.has_body:
            if self._read:
                self._writer.write(answers.chunk(bytes(self._read)))
            while piece := await self._body.piece():
                self._writer.write(answers.chunk(piece))
                await self._writer.drain()
            self._writer.write(answers.END)
        return True

    async def page(self, answer: InternalAnswer) -> bool:
        """Answers with a page of ours."""
        reusable = await self._skip(MOST_DRAINED)
        self._writer.write(answers.page(self._tag, answer, closes=not reusable))
        return reusable

    async def refuse(self) -> bool:
        """Answers a message whose URL cannot be read."""
        return await self.page(InternalAnswer(400, {"content-type": "text/plain", "cache-control": "no-store"}, b"bad request\n"))

    async def drain(self) -> None:
        """Reads what is left of the body, or of its preview, and forgets it."""
        while await self._body.piece():
            pass

    async def _skip(self, most: int) -> bool:
        """Reads what is left of the body. Returns False where that is more than `most` bytes."""
        size = 0
        while piece := await self._body.piece():
            size += len(piece)
            if size > most:
                return False
        return True


def _asked(icap: IcapRequest, http: HttpHead) -> AskedRequest:
    method, target, version = http.start
    if not version.startswith("HTTP/") or " " in version:  # a blank in the target: only a part of it would be judged
        raise IcapError(400, "no HTTP request line")
    if target.startswith("/"):
        target = f"http://{http.fields.get('host', '')}{target}"
    return AskedRequest(
        target if target.isascii() else "".join(mark if mark < "\x80" else f"%{ord(mark):02X}" for mark in target),
        icap.fields.get("x-client-ip", ""),
        icap.fields.get("x-client-username", ""),
        method,
        http.fields.get("referer", ""),
        http.fields.get("sec-fetch-dest", ""),
        http.fields.get("accept", ""),
        private="authorization" in http.fields or "range" in http.fields,
    )

"""The HTTP endpoint of decisions: `GET` and `POST /decide` in JSON, and `/authz/…` for Envoy's ext_authz over HTTP.

==========================  ==================================================================================================
request                     answer
==========================  ==================================================================================================
`GET /decide?url=…`         a verdict as JSON; further parameters as fields of `POST`
`POST /decide`              JSON object with `url`, or `{"requests": [...]}` of up to 1,000 of them; the verdicts in their order
any method `/authz/PATH`    200 for a request that is allowed, else the block page; PATH and Host are of the request in question
==========================  ==================================================================================================

Source: Envoy's documentation of the HTTP service of `envoy.filters.http.ext_authz`.
"""

import asyncio
import hmac
import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Final, Protocol
from urllib.parse import parse_qsl, urlsplit

from gatewayfilter.integration.request_decider import AskedRequest, Decision, RequestDecider
from gatewayfilter.interfaces import InternalAnswer
from gatewayfilter.model import Request, ResourceType, Verdict
from gatewayfilter.settings.web import is_loopback
from gatewayfilter.telemetry import Counters

MOST_REQUESTS: Final = 1_000
LONGEST_BODY: Final = 1_000_000
MOST_PARAMETERS: Final = 20
BODY_S: Final = 20.0
"""How long a body may take."""
_OF_BROWSERS: Final = frozenset({"origin", "referer", "sec-fetch-site"})
"""Fields that pages of browsers cannot leave out of their requests."""
_AUTHZ: Final = "/authz"
_FIELDS: Final = ("url", "client", "user", "method", "source", "type")
_SCHEMES: Final = frozenset({"http", "https"})

type _Scope = MutableMapping[str, Any]
type _Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
type _Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class AnswerBlocked(Protocol):
    """Makes the answers to blocked requests."""

    def __call__(self, request: Request, verdict: Verdict, accept_language: str) -> InternalAnswer:
        """Returns the block page, or what suits the resource type."""
        ...


class _RefusedError(Exception):
    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class DecideEndpoint:
    """An ASGI application.

    Args:
        decider: decides requests.
        answer_blocked: makes block pages for Envoy.
        counters: `decide_requests`, `decide_refused`.
        token: what `Authorization: Bearer` has to hold; `""` where only this machine is served.
    """

    def __init__(self, decider: RequestDecider, answer_blocked: AnswerBlocked, counters: Counters, token: str = "") -> None:
        self._decider = decider
        self._answer_blocked = answer_blocked
        self._counters = counters
        self._token = token.encode()

    async def __call__(self, scope: _Scope, receive: _Receive, send: _Send) -> None:
        """Answers a request."""
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(scope["headers"])}
        try:
            self._admit(scope, headers)
            answer = await self._answer(scope, headers, receive)
        except _RefusedError as error:
            self._counters.add("decide_refused")
            answer = _json(error.status, {"error": str(error)})
        fields = [(name.lower().encode("latin-1"), value.encode("latin-1", "replace")) for name, value in answer.headers.items()]
        fields.append((b"content-length", str(len(answer.content)).encode()))
        await send({"type": "http.response.start", "status": answer.status, "headers": fields})
        await send({"type": "http.response.body", "body": answer.content})

    def _admit(self, scope: _Scope, headers: Mapping[str, str]) -> None:
        if self._token:
            given = headers.get("authorization", "").removeprefix("Bearer ").encode("latin-1", "replace")
            if not hmac.compare_digest(given, self._token):
                raise _RefusedError(401, "a token is needed: Authorization: Bearer …")
        elif not scope["path"].startswith(f"{_AUTHZ}/"):
            # Pages of any site can send requests to loopback, by GET without Origin; a name may lead here by DNS rebinding.
            if not _OF_BROWSERS.isdisjoint(headers):
                raise _RefusedError(403, "pages of browsers are not served")
            if not _names_this_machine(headers):
                raise _RefusedError(421, "Host has to be loopback, unless a token is set")

    async def _answer(self, scope: _Scope, headers: Mapping[str, str], receive: _Receive) -> InternalAnswer:
        path, method = scope["path"], scope["method"]
        if path.startswith(f"{_AUTHZ}/"):
            return self._authorize(scope, headers)
        if path != "/decide":
            raise _RefusedError(404, "there are /decide and /authz/")
        if method == "GET":
            return _json(200, self._verdict(_parameters(scope["query_string"])))
        if method != "POST":
            raise _RefusedError(405, "GET or POST")
        try:
            async with asyncio.timeout(BODY_S):
                document = json.loads(await _body(receive))
        except TimeoutError:
            raise _RefusedError(408, f"the body takes more than {BODY_S:.0f} seconds") from None
        except (ValueError, RecursionError):
            raise _RefusedError(400, "no JSON") from None
        if isinstance(document, dict) and isinstance(document.get("requests"), list):
            requests = document["requests"]
            if len(requests) > MOST_REQUESTS:
                raise _RefusedError(413, f"at most {MOST_REQUESTS} requests at once")
            return _json(200, {"verdicts": [self._verdict(one) for one in requests]})
        return _json(200, self._verdict(document))

    def _verdict(self, given: object) -> dict[str, object]:
        if not isinstance(given, Mapping) or not isinstance(given.get("url"), str):
            raise _RefusedError(400, "a request is an object with url")
        values = {name: given.get(name, "") for name in _FIELDS}
        if not all(isinstance(value, str) for value in values.values()):
            raise _RefusedError(400, f"{', '.join(_FIELDS)} are texts")
        kind = values["type"]
        if kind and kind not in ResourceType:
            raise _RefusedError(400, f"type is one of {', '.join(ResourceType)}")
        self._counters.add("decide_requests")
        asked = AskedRequest(
            values["url"],
            values["client"],
            values["user"],
            values["method"] or "GET",
            values["source"],
            resource_type=ResourceType(kind) if kind else None,
        )
        return _shown(self._decider.decide(asked))

    def _authorize(self, scope: _Scope, headers: Mapping[str, str]) -> InternalAnswer:
        self._counters.add("decide_requests")
        scheme = headers.get("x-forwarded-proto", "http").lower()
        raw = scope.get("raw_path", scope["path"].encode("latin-1", "replace")).decode("latin-1").removeprefix(_AUTHZ)
        query = scope["query_string"].decode("latin-1")
        url = f"{scheme if scheme in _SCHEMES else 'http'}://{headers.get('host', '')}{raw}{f'?{query}' if query else ''}"
        asked = AskedRequest(
            url,
            headers.get("x-envoy-external-address", "") or headers.get("x-forwarded-for", "").rpartition(",")[2].strip(),
            "",
            scope["method"],
            headers.get("referer", ""),
            headers.get("sec-fetch-dest", ""),
            headers.get("accept", ""),
            private="range" in headers or (not self._token and "authorization" in headers),
        )
        decision = self._decider.decide(asked)
        if not decision.verdict.blocked:
            return InternalAnswer(200, {"x-gatewayfilter": f"allow; reason={decision.verdict.reason}"}, b"")
        if decision.request is None:
            return InternalAnswer(403, {"x-gatewayfilter": "block; reason=bad-request"}, b"")
        page = self._answer_blocked(decision.request, decision.verdict, headers.get("accept-language", ""))
        status = page.status if page.status >= 300 else 403
        return InternalAnswer(status, page.headers, page.content)


def _parameters(query: bytes) -> dict[str, str]:
    try:
        return dict(parse_qsl(query.decode("latin-1"), max_num_fields=MOST_PARAMETERS))
    except ValueError:
        raise _RefusedError(400, f"at most {MOST_PARAMETERS} parameters") from None


def _names_this_machine(headers: Mapping[str, str]) -> bool:
    """Returns whether Host is loopback: a page may have a name of its own that resolves to it (DNS rebinding)."""
    try:
        return "host" not in headers or is_loopback(urlsplit(f"//{headers['host']}").hostname or "")
    except ValueError:
        return False


async def _body(receive: _Receive) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _RefusedError(400, "the connection broke")
        body += message.get("body", b"")
        if len(body) > LONGEST_BODY:
            raise _RefusedError(413, f"a body of more than {LONGEST_BODY:,} bytes")
        if not message.get("more_body"):
            return bytes(body)


def _shown(decision: Decision) -> dict[str, object]:
    verdict = decision.verdict
    return {
        "action": verdict.action.value,
        "reason": verdict.reason.value,
        "category": verdict.category,
        "source_list": verdict.source_list,
        "rule": verdict.rule,
        "unknown": verdict.unknown,
        "ttl_s": decision.ttl_s,
    }


def _json(status: int, document: object) -> InternalAnswer:
    fields = {"content-type": "application/json", "cache-control": "no-store", "x-content-type-options": "nosniff"}
    return InternalAnswer(status, fields, json.dumps(document, ensure_ascii=False).encode("utf-8", "replace"))

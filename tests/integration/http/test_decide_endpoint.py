"""Decisions over HTTP: JSON one by one and in batches, Envoy's questions, tokens, hostile bodies."""

import asyncio
import json
from typing import Any

import pytest

from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.integration.http import endpoint as module
from gatewayfilter.integration.http.endpoint import LONGEST_BODY, DecideEndpoint
from gatewayfilter.interfaces import InternalAnswer
from gatewayfilter.model import Request, ResourceType, Verdict
from tests.integration.http_asgi import ask
from tests.integration.integration_engine import Records, decider_over


def _answer_blocked(request: Request, verdict: Verdict, accept_language: str) -> InternalAnswer:
    status = 200 if request.resource_type is ResourceType.IMAGE else 403
    return InternalAnswer(
        status, {"content-type": "text/html"}, f"{verdict.reason} {request.url.text} {accept_language}".encode()
    )


@pytest.fixture
def records() -> Records:
    return Records()


@pytest.fixture
def endpoint(listed: FilterEngine, records: Records) -> DecideEndpoint:
    decider, counters = decider_over(listed, records)
    return DecideEndpoint(decider, _answer_blocked, counters)


async def test_requests_are_decided_one_by_one_and_in_batches(endpoint: DecideEndpoint, records: Records) -> None:
    status, _, found = await ask(
        endpoint, "GET", "/decide", query="url=http%3A%2F%2Fblocked.test%2F&client=192.0.2.7&type=script"
    )
    assert (status, found["action"], found["reason"], found["category"]) == (200, "block", "blacklist", "gambling")
    assert (records.records[0][0].client, records.records[0][0].resource_type) == ("192.0.2.7", ResourceType.SCRIPT)
    batch = {
        "requests": [{"url": "http://blocked.test/"}, {"url": "http://garden.test/", "source": "http://x.test/"}, {"url": "?"}]
    }
    status, _, found = await ask(endpoint, "POST", "/decide", body=json.dumps(batch).encode())
    assert [one["reason"] for one in found["verdicts"]] == ["blacklist", "unknown", "bad-request"]
    status, _, found = await ask(endpoint, "POST", "/decide", body=b'{"url": "http://garden.test/"}')
    assert (status, found["action"], found["unknown"]) == (200, "allow", True)


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/", b"", 404),
        ("PUT", "/decide", b"", 405),
        ("GET", "/decide", b"", 400),
        ("POST", "/decide", b"no", 400),
        ("POST", "/decide", b"[" * 100_000, 400),
        ("POST", "/decide", b"[]", 400),
        ("POST", "/decide", b'{"url": 7}', 400),
        ("POST", "/decide", b'{"url": "http://a.test/", "client": 7}', 400),
        ("POST", "/decide", b'{"url": "http://a.test/", "type": "cake"}', 400),
        ("POST", "/decide", b'{"requests": [' + b",".join([b"{}"] * 1_001) + b"]}", 413),
        ("POST", "/decide", b" " * (LONGEST_BODY + 1), 413),
    ],
)
async def test_what_is_no_question_is_refused(endpoint: DecideEndpoint, method: str, path: str, body: bytes, status: int) -> None:
    found, _, answer = await ask(endpoint, method, path, body=body)
    assert found == status
    assert answer["error"]


async def test_envoy_is_answered_by_status(endpoint: DecideEndpoint, records: Records) -> None:
    status, headers, _ = await ask(
        endpoint,
        "GET",
        "/authz/a%20b",
        query="c=1",
        host="garden.test",
        x_forwarded_proto="https",
        x_forwarded_for="9.9.9.9, 192.0.2.7",
    )
    assert (status, headers["x-gatewayfilter"]) == (200, "allow; reason=unknown")
    assert records.records[0][0].url.text == "https://garden.test/a%20b?c=1"
    assert records.records[0][0].client == "192.0.2.7"
    status, _, page = await ask(endpoint, "POST", "/authz/", host="blocked.test", accept_language="zh")
    assert (status, page) == (403, b"blacklist http://blocked.test/ zh")
    assert (await ask(endpoint, "GET", "/authz/x.png", host="blocked.test"))[0] == 403
    assert (await ask(endpoint, "GET", "/authz/", host="a b"))[0] == 403


async def test_a_token_is_asked_for_where_one_is_set_and_browsers_are_not_served(listed: FilterEngine) -> None:
    decider, counters = decider_over(listed, Records())
    guarded = DecideEndpoint(decider, _answer_blocked, counters, "secret")
    for given, status in (("", 401), ("Bearer other", 401), ("Bearer s\xe9", 401), ("Bearer secret", 200)):
        assert (await ask(guarded, "GET", "/decide", query="url=http://garden.test/", authorization=given))[0] == status
    assert counters["decide_refused"] == 3
    open_ = DecideEndpoint(decider, _answer_blocked, counters)
    fields: list[dict[str, Any]] = [{"origin": "null"}, {"referer": "http://page.test/"}, {"sec_fetch_site": "cross-site"}]
    for field in fields:
        assert (await ask(open_, "GET", "/decide", query="url=http://garden.test/", **field))[0] == 403
    for host, status in (("127.0.0.1:8082", 200), ("[::1]:8082", 200), ("localhost", 200), ("page.test:8082", 421), ("[", 421)):
        assert (await ask(open_, "GET", "/decide", query="url=http://garden.test/", host=host))[0] == status


async def test_a_verdict_is_shown_whole(listed: FilterEngine, records: Records) -> None:
    decider, counters = decider_over(listed, records, ttl_s=60)
    endpoint = DecideEndpoint(decider, _answer_blocked, counters)
    given = {"url": "http://blocked.test/", "client": "192.0.2.7", "user": "kim", "method": "POST", "source": "http://s.test/"}
    status, headers, found = await ask(endpoint, "POST", "/decide", body=json.dumps(given).encode())
    assert (status, found) == (
        200,
        {
            "action": "block",
            "reason": "blacklist",
            "category": "gambling",
            "source_list": "casinos",
            "rule": found["rule"],
            "unknown": False,
            "ttl_s": 60,
        },
    )
    assert headers == {
        "content-type": "application/json",
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
        "content-length": str(len(json.dumps(found))),
    }
    ((request, _),) = records.records
    assert (request.client, request.user, request.method) == ("192.0.2.7", "kim", "POST")
    assert request.source is not None
    assert request.source.text == "http://s.test/"
    assert (counters["decide_requests"], counters["decide_refused"]) == (1, 0)
    assert (await ask(endpoint, "GET", "/other"))[2] == {"error": "there are /decide and /authz/"}
    assert counters["decide_refused"] == 1


@pytest.mark.parametrize(
    ("path", "fields", "url", "client", "private"),
    [
        ("/authz/a", {}, "http://garden.test/a", "", False),
        ("/authz/a", {"x_forwarded_proto": "HTTPS"}, "https://garden.test/a", "", False),
        ("/authz/a", {"x_forwarded_proto": "ftp"}, "http://garden.test/a", "", False),
        ("/authz/authz/a", {}, "http://garden.test/authz/a", "", False),
        ("/authz/", {"x_envoy_external_address": "1.2.3.4", "x_forwarded_for": "::1"}, "http://garden.test/", "1.2.3.4", False),
        ("/authz/", {"x_forwarded_for": "192.0.2.3"}, "http://garden.test/", "192.0.2.3", False),
        ("/authz/", {"x_forwarded_for": "192.0.2.3 , 192.0.2.4 "}, "http://garden.test/", "192.0.2.4", False),
        ("/authz/", {"range": "bytes=0-1"}, "http://garden.test/", "", True),
        ("/authz/", {"authorization": "Basic x"}, "http://garden.test/", "", True),
        ("/authz/", {"referer": "http://r.test/", "sec_fetch_dest": "document"}, "http://garden.test/", "", False),
    ],
)  # fmt: skip
async def test_what_envoy_asks(
    path: str, fields: dict[str, Any], url: str, client: str, endpoint: DecideEndpoint, records: Records, *, private: bool
) -> None:
    status, headers, content = await ask(endpoint, "GET", path, host="garden.test", **fields)
    assert (status, content, headers["content-length"]) == (200, b"", "0")
    ((request, _),) = records.records
    assert (request.url.text, request.client, request.user) == (url, client, "")
    assert records.offers == ([] if private else [url])
    assert (request.source is not None) is ("referer" in fields)


async def test_a_token_of_envoys_is_no_visitors(listed: FilterEngine, records: Records) -> None:
    decider, counters = decider_over(listed, records)
    guarded = DecideEndpoint(decider, _answer_blocked, counters, "secret")
    assert (await ask(guarded, "GET", "/authz/", host="garden.test", authorization="Bearer secret"))[0] == 200
    assert records.offers == ["http://garden.test/"]
    assert (await ask(guarded, "GET", "/authz/", host="garden.test"))[0] == 401
    assert counters["decide_requests"] == 1


@pytest.mark.parametrize(("status", "shown"), [(200, 403), (299, 403), (300, 300), (303, 303), (403, 403), (503, 503)])
async def test_a_page_that_says_that_all_is_well_is_a_block_for_envoy(status: int, shown: int, listed: FilterEngine) -> None:
    def answer(request: Request, verdict: Verdict, accept_language: str) -> InternalAnswer:
        del request, verdict, accept_language
        return InternalAnswer(status, {"A": "b"}, b"page")

    endpoint = DecideEndpoint(*(decider_over(listed, Records())[0], answer, decider_over(listed, Records())[1]))
    found, headers, content = await ask(endpoint, "GET", "/authz/", host="blocked.test")
    assert (found, headers, content) == (shown, {"a": "b", "content-length": "4"}, b"page")
    found, headers, content = await ask(endpoint, "GET", "/authz/", host="a b")
    assert (found, headers["x-gatewayfilter"], content) == (403, "block; reason=bad-request", b"")


async def test_bodies_come_in_pieces_and_have_an_end(endpoint: DecideEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = b'{"url": "http://garden.test/"}'
    ended = {"type": "http.disconnect"}

    async def answer(*messages: dict[str, Any], stalls: bool = False) -> int:
        coming, sent = iter(messages), list[dict[str, Any]]()

        async def receive() -> dict[str, Any]:
            if stalls:
                await asyncio.sleep(20)
            return next(coming)

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {"type": "http", "method": "POST", "path": "/decide", "query_string": b"", "headers": []}
        await endpoint(scope, receive, send)
        return int(sent[0]["status"])

    def part(body: bytes, *, more: bool = True) -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": more}

    assert await answer(part(whole[:9]), part(whole[9:]), {"type": "http.request"}) == 200
    assert await answer(part(whole[:9]), ended) == 400
    assert await answer(part(whole), part(b" " * (LONGEST_BODY - len(whole)), more=False)) == 200
    assert await answer(part(whole), part(b" " * (LONGEST_BODY - len(whole) + 1))) == 413
    monkeypatch.setattr(module, "BODY_S", 0.01)
    assert await answer(stalls=True) == 408


async def test_as_many_requests_at_once_as_there_may_be(endpoint: DecideEndpoint) -> None:
    batch = json.dumps({"requests": [{"url": "?"}] * 1_000}).encode()
    status, _, found = await ask(endpoint, "POST", "/decide", body=batch)
    assert (status, len(found["verdicts"])) == (200, 1_000)


@pytest.mark.parametrize(("further", "status"), [(19, 200), (20, 400)])
async def test_parameters_are_few(further: int, status: int, endpoint: DecideEndpoint) -> None:
    found, _, answer = await ask(endpoint, "GET", "/decide", query="url=http://garden.test/" + "&a=1" * further)
    assert found == status
    assert status == 200 or answer["error"] == "at most 20 parameters"


async def test_the_first_of_repeated_fields_counts_and_what_is_no_request_is_left_alone(endpoint: DecideEndpoint) -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError

    fields = [(b"host", b"127.0.0.1"), (b"host", b"page.test")]
    scope = {"type": "http", "method": "GET", "path": "/decide", "query_string": b"url=http://garden.test/", "headers": fields}
    await endpoint(scope, receive, send)
    assert sent[0]["status"] == 200
    await endpoint({"type": "lifespan"}, receive, send)
    assert len(sent) == 2

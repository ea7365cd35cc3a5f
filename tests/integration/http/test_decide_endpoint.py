"""Decisions over HTTP: JSON one by one and in batches, Envoy's questions, tokens, hostile bodies."""

import json
from typing import Any

import pytest

from gatewayfilter.engine.filter_engine import FilterEngine
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

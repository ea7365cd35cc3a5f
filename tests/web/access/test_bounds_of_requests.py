"""What a request may be, whom it comes from, and where an answer leads: at the bounds."""

import asyncio
import re
import socket
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from fastapi import HTTPException
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Message, Scope

from gatewayfilter.web.access.cookies import end_session, end_sign_on, session_cookie, set_sign_on, sign_on_cookie, source_of
from gatewayfilter.web.access.csrf import check_csrf
from gatewayfilter.web.access.gate import MAX_BODY, MAX_UPLOAD, Gate, own_names
from gatewayfilter.web.access.identity import Identity
from gatewayfilter.web.access.identity import Role as WebRole

CSRF = "token-of-a-session"


def request(
    path: str = "/x", method: str = "GET", *, tls: bool = False, client: tuple[str, int] | None = ("10.0.0.7", 5), **headers: str
) -> Request:
    """Returns a request; underscores of header fields stand for hyphens."""
    state = SimpleNamespace(tls=tls, authenticator=None)
    fields = [(name.replace("_", "-").encode(), text.encode("latin-1")) for name, text in headers.items()]
    scope: Scope = {
        "type": "http",
        "method": method,
        "path": path,
        "headers": fields,
        "query_string": b"",
        "client": client,
        "scheme": "http",
        "server": ("a", 1),
        "app": SimpleNamespace(state=state),
    }
    return Request(scope)


async def served(scope: Scope, receive: Any, send: Any) -> None:
    """Reads a request to its end; tells how much came, or that its sender has gone."""
    size = 0
    while (message := await receive())["type"] == "http.request":
        size += len(message.get("body", b""))
        if not message.get("more_body", False):
            await PlainTextResponse(str(size))(scope, receive, send)
            return
    await PlainTextResponse("gone", headers={"x-frame-options": "own"})(scope, receive, send)


def through(gate: Gate, *pieces: bytes, method: str = "POST", path: str = "/x", **headers: str) -> tuple[int, str, Headers]:
    """Sends a request through a gate; returns status, text and header fields of the answer."""
    coming: list[Message] = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
    coming.append({"type": "http.request", "more_body": False})
    sent: list[Message] = []

    async def receive() -> Message:
        return coming.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    given = {"host": "filter.example"} | {name.replace("_", "-"): text for name, text in headers.items()}
    scope: Scope = {
        "type": "http", "method": method, "path": path, "scheme": "http",
        "headers": [(name.encode(), text.encode("latin-1")) for name, text in given.items()],
    }  # fmt: skip
    asyncio.run(gate(scope, receive, send))
    text = b"".join(message.get("body", b"") for message in sent[1:]).decode()
    return sent[0]["status"], text, Headers(raw=sent[0]["headers"])


def noting[T](notes: list[Any], result: T) -> Callable[..., T]:
    """Returns a function that notes what it is given, and returns a result."""

    def note(*given: Any) -> T:
        notes.append(given[0] if len(given) == 1 else given)
        return result

    return note


def gate(*, may: bool = True, tls: bool = False, uploads: tuple[str, ...] = ("/up",)) -> Gate:
    return Gate(served, names=["filter.example"], uploads=uploads, may_upload=lambda _: may, tls=tls)


@pytest.mark.parametrize(
    ("options", "length", "status"),
    [
        ({}, MAX_BODY, 200),
        ({}, MAX_BODY + 1, 413),
        ({"path": "/up/load"}, MAX_UPLOAD, 200),
        ({"path": "/up/load"}, MAX_UPLOAD + 1, 413),
        ({"path": "/up", "method": "GET"}, MAX_BODY + 1, 413),
        ({"path": "/up", "method": "OPTIONS"}, MAX_BODY, 200),
    ],
)
def test_announced_lengths(options: dict[str, str], length: int, status: int) -> None:
    assert through(gate(), content_length=str(length), **cast("dict[str, Any]", options))[0] == status
    assert through(gate(may=False), content_length=str(MAX_BODY + 1), **cast("dict[str, Any]", options))[0] == 413


def test_lengths_and_hosts_that_are_none() -> None:
    asked: list[object] = []
    asking = Gate(served, names=["filter.example"], uploads=("/up",), may_upload=noting(asked, False))
    assert through(asking, path="/up", host="evil.example")[:2] == (421, "unknown host; web.names adds one\n")
    assert asked == []
    assert through(asking, path="/up", content_length=str(MAX_BODY + 1))[0] == 413
    assert len(asked) == 1
    assert through(Gate(served, names=["filter.example"]), path="/x", content_length=str(MAX_BODY + 1))[0] == 413
    for length in ("-1", "x", "0" * 21, ""):
        status, text, _ = through(gate(), content_length=length)
        assert (status, text) == (413, "too large\n")
    assert through(gate(), content_length="0" * 20)[0] == 200
    for host, status in (
        ("filter.example:80", 200),
        ("filter.example:", 421),
        ("filter.example:x", 421),
        ("10.0.0.1", 200),
        ("[::1]:80", 200),
    ):
        assert through(gate(), host=host)[0] == status
    status, text, headers = through(gate(), path="/api/v1/x", host="evil.example")
    assert (status, headers["content-type"], "unknown host" in text) == (421, "application/problem+json", True)


def test_a_body_is_bounded_while_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    half = b"x" * (MAX_BODY // 2)
    assert through(gate(), half, half)[1] == str(MAX_BODY)
    assert through(gate(), half, half, b"x")[1] == "gone"
    monkeypatch.setattr("gatewayfilter.web.access.gate.BODY_PAUSE_S", 0.0)
    stopped = asyncio.Event

    async def receive() -> Message:
        await stopped().wait()
        raise AssertionError

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    scope: Scope = {"type": "http", "method": "POST", "path": "/x", "scheme": "http", "headers": [(b"host", b"filter.example")]}
    asyncio.run(gate()(scope, receive, send))
    assert sent[1]["body"] == b"gone"


def test_after_the_whole_body_a_sender_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream is sent for minutes: what tells that its reader has gone comes at its end."""
    pauses: list[float | None] = []
    real = asyncio.timeout

    def noted(pause: float | None) -> asyncio.Timeout:
        pauses.append(pause)
        return real(None)

    monkeypatch.setattr(asyncio, "timeout", noted)
    coming: list[Message] = [
        {"type": "http.request", "body": b"", "more_body": True},
        {"type": "http.request", "more_body": False},
        {"type": "http.disconnect"},
    ]

    async def receive() -> Message:
        return coming.pop(0)

    async def reading(scope: Scope, receive: Any, send: Any) -> None:
        del scope, send
        for _ in range(3):
            await receive()

    async def send(_: Message) -> None:
        raise AssertionError

    scope: Scope = {"type": "http", "method": "GET", "path": "/x", "scheme": "http", "headers": [(b"host", b"filter.example")]}
    asyncio.run(Gate(reading, names=["filter.example"])(scope, receive, send))
    assert pauses == [20.0, 20.0, None]


def test_fields_of_answers_and_types_of_bodies() -> None:
    _, text, headers = through(gate(), b"x" * MAX_BODY, b"x")
    assert (text, headers["x-frame-options"], headers["cache-control"]) == ("gone", "own", "no-store")
    assert "strict-transport-security" not in headers
    assert through(gate(tls=True))[2]["strict-transport-security"] == "max-age=31536000"
    for kind, status in (
        ("text/plain", 200),
        ("text/plain; charset=UTF-8", 200),
        ('text/plain; charset="utf8"', 200),
        ("a/b; charset*=utf-8''x", 200),
        ("text/plain; charset=punycode", 415),
        ("text/plain; charset=", 415),
    ):
        assert through(gate(), content_type=kind)[0] == status
    for headers_, status in (
        ({"sec_fetch_site": "same-origin"}, 200), ({"sec_fetch_site": "none"}, 200), ({"sec_fetch_site": "cross-site"}, 403),
        ({"origin": "http://filter.example"}, 200), ({"origin": "https://filter.example"}, 403), ({"origin": ""}, 403),
    ):  # fmt: skip
        assert through(gate(), **headers_)[0] == status
        assert through(gate(), method="HEAD", **headers_)[0] == 200
    passed: list[str] = []

    async def other(scope: Scope, receive: Any, send: Any) -> None:
        del receive, send
        passed.append(scope["type"])

    asyncio.run(Gate(other, names=())({"type": "lifespan"}, cast("Any", None), cast("Any", None)))
    assert passed == ["lifespan"]


def test_own_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "Box.lan")
    assert own_names("HERE", ["more"]) == {"localhost", "here", "box.lan", "box", "box.lan.local", "more"}


def test_cookies_have_a_name_of_the_host_by_tls_alone() -> None:
    given = "gatewayfilter-session=a; __Host-gatewayfilter-session=b; gatewayfilter-sign-on=c; gatewayfilter-device=" + "d" * 300
    assert (
        session_cookie(request(cookie=given)),
        session_cookie(request(cookie=given, tls=True)),
        session_cookie(request()),
    ) == ("a", "b", "")
    assert (sign_on_cookie(request(cookie=given)), sign_on_cookie(request())) == ("c", "")
    assert len(session_cookie(request(cookie=f"gatewayfilter-session={'x' * 300}"))) == 200
    assert len(sign_on_cookie(request(cookie=f"gatewayfilter-sign-on={'x' * 4_001}"))) == 4_000
    source = source_of(request(cookie=given, user_agent="u" * 400))
    assert (source.agent, source.device, source.network) == (
        "u" * 300,
        "d" * 200,
        "10.0.0.7",
    )
    assert source_of(request(client=None)).network == source_of(request(client=("", 1))).network
    for tls, name, flag in ((False, "gatewayfilter-sign-on", ""), (True, "__Host-gatewayfilter-sign-on", "; Secure")):
        answer = Response()
        set_sign_on(request(tls=tls), answer, "v")
        assert answer.headers["set-cookie"] == f"{name}=v; HttpOnly; Max-Age=600; Path=/; SameSite=lax{flag}"


def test_cookies_are_taken_as_they_were_given() -> None:
    for end, name, site in ((end_session, "session", "strict"), (end_sign_on, "sign-on", "lax")):
        for tls, prefix, flag in ((False, "", ""), (True, "__Host-", "; Secure")):
            answer = Response()
            end(request(tls=tls), answer)
            taken = re.sub(r"expires=[^;]*; ", "", answer.headers["set-cookie"])
            assert taken == f'{prefix}gatewayfilter-{name}=""; HttpOnly; Max-Age=0; Path=/; SameSite={site}{flag}'


@pytest.mark.parametrize(
    ("method", "headers", "body", "refused"),
    [
        ("GET", {}, b"", False),
        ("HEAD", {}, b"", False),
        ("OPTIONS", {}, b"", False),
        ("POST", {}, b"", True),
        ("POST", {"x_csrf_token": CSRF}, b"", False),
        ("POST", {"x_csrf_token": "x"}, f"csrf={CSRF}".encode(), True),
        ("POST", {}, f"csrf={CSRF}".encode(), False),
        ("DELETE", {}, b"csrf=wrong", True),
    ],
)
def test_a_change_repeats_the_token_of_its_session(method: str, headers: dict[str, str], body: bytes, *, refused: bool) -> None:
    kind = {"content_type": "application/x-www-form-urlencoded"} if body else {}
    sent = request(method=method, **cast("dict[str, Any]", kind | headers))
    sent.state.identity = Identity("a", WebRole.ADMIN, CSRF)

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    sent._receive = receive
    if refused:
        with pytest.raises(HTTPException) as caught:
            asyncio.run(check_csrf(sent))
        assert caught.value.status_code == 403
    else:
        asyncio.run(check_csrf(sent))


def test_who_has_no_cookie_repeats_no_token() -> None:
    for identity in (None, Identity("a", WebRole.ADMIN)):
        sent = request(method="POST")
        sent.state.identity = identity
        asyncio.run(check_csrf(sent))

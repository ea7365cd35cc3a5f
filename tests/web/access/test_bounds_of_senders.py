"""Whom a request comes from, where an answer leads, and live streams: at the bounds."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from fastapi import HTTPException
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.types import Scope

from gatewayfilter.errors import ConflictError, StoreError
from gatewayfilter.model import Account, ApiToken, Role, Via, WebSession
from gatewayfilter.model import Scope as TokenScope
from gatewayfilter.use_cases.access.dashboard_access import DashboardAccess
from gatewayfilter.web.access import event_stream
from gatewayfilter.web.access.authenticator import AccountAuthenticator
from gatewayfilter.web.access.changes import based_on, check_version, etag, undo_url
from gatewayfilter.web.access.event_stream import event, first_number, stream
from gatewayfilter.web.access.forms import Fields
from gatewayfilter.web.access.identity import Identity, current, require
from gatewayfilter.web.access.identity import Role as WebRole
from gatewayfilter.web.access.redirects import done, own_path

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


ACCOUNT = Account(3, "ada", Role.APPROVER, "", language="zh")
SESSION = WebSession(b"d", 3, CSRF, 0.0, 0.0, 9.0, "net", "")
TOKEN = ApiToken(5, b"d", "job", 3, TokenScope.READ, 0.0, None)


class Access:
    """Finds a session and a token."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.sessions = SimpleNamespace(find=lambda secret: (ACCOUNT, SESSION) if secret == "s" else None)
        self.tokens = SimpleNamespace(find=self._find)

    def _find(self, text: str) -> Any:
        self.asked.append(text)
        return (ACCOUNT, TOKEN) if text == "t" else None


def noting[T](notes: list[Any], result: T) -> Callable[..., T]:
    """Returns a function that notes what it is given, and returns a result."""

    def note(*given: Any) -> T:
        notes.append(given[0] if len(given) == 1 else given)
        return result

    return note


def test_who_sends_a_request() -> None:
    access = Access()
    identify = AccountAuthenticator(cast("DashboardAccess", access)).identify
    by_session = Identity("ada", WebRole.APPROVER, CSRF, "zh", 3, Via.SESSION, "net", SESSION)
    by_token = Identity("ada", WebRole.VIEWER, "", "zh", 3, Via.TOKEN, "job")
    cookie = "gatewayfilter-session=s"
    assert (identify(request(cookie=cookie)), identify(request(cookie="gatewayfilter-session=x")), identify(request())) == (
        by_session,
        None,
        None,
    )
    assert identify(request("/api/v1/x", authorization="BEARER  t ", cookie=cookie)) == by_token
    assert identify(request("/metrics", authorization="bearer t")) == by_token
    assert identify(request("/rules", authorization="bearer t", cookie=cookie)) is None
    assert identify(request("/api/v1/x", authorization="bearer wrong", cookie=cookie)) is None
    assert identify(request("/api/v1/x", authorization="basic t", cookie=cookie)) == by_session
    identify(request("/api/", authorization=f"bearer {'x' * 300}"))
    assert access.asked[-1] == "x" * 200
    assert (by_session.actor.name, by_session.actor.via, by_session.actor.detail, by_session.model_role) == (
        "ada",
        Via.SESSION,
        "net",
        Role.APPROVER,
    )


def test_a_role_may_do_what_lower_ones_may() -> None:
    asked: list[Any] = []
    viewer, admin = Identity("v", WebRole.VIEWER), Identity("a", WebRole.ADMIN)

    def identified(identity: Identity | None) -> Request:
        sent = request()
        sent.app.state.authenticator = SimpleNamespace(identify=noting(asked, identity))
        return sent

    sent = identified(admin)
    assert (current(sent), current(sent), len(asked)) == (admin, admin, 1)
    assert require(WebRole.APPROVER)(sent) == admin
    assert require(WebRole.VIEWER)(identified(viewer)) == viewer
    for sent, role, status, why in (
        (identified(viewer), WebRole.APPROVER, 403, "this needs the role approver"),
        (identified(None), WebRole.VIEWER, 401, "log in first"),
    ):
        with pytest.raises(HTTPException) as caught:
            require(role)(sent)
        assert (caught.value.status_code, caught.value.detail) == (status, why)


def test_where_answers_lead() -> None:
    long = f"/{'x' * 1_999}"
    for target, path in (
        ("/a?b=c#d", "/a?b=c#d"),
        ("", "/"),
        ("a", "/"),
        ("//evil", "/"),
        ("/\\evil", "/"),
        ("/a\tb", "/"),
        ("/a\nb", "/"),
        (long, long),
        (f"{long}x", "/"),
        ("http://evil/", "/"),
        ("/a//b", "/a//b"),
        ("///evil", "/"),
        ("//[", "/"),
    ):
        assert own_path(target) == path
    by_htmx, plain = done(request(hx_request="true"), "/a"), done(request(hx_request="x"), "/a")
    assert (by_htmx.status_code, by_htmx.headers["hx-redirect"], plain.status_code, plain.headers["location"]) == (
        200,
        "/a",
        303,
        "/a",
    )


def test_an_edit_is_based_on_a_version() -> None:
    for expected in ("", "*", '"1"', 'W/"1"', '"2", "1"', "1", '"2", *', '"1" , "2"'):
        check_version(expected, lambda: "1")
    for expected in ('"2"', '"2", "3"', '"x' + "y" * 1_000 + '","1"'):
        with pytest.raises(ConflictError):
            check_version(expected, lambda: "1")
    for text, number in (("", None), ("*", None), ('"*"', None), (' W/"7" ', 7), ("123456789", 123_456_789), ("0", 0)):
        assert based_on(text) == number
    for text in ("x", "1234567890", "-1", "\u0663", "1.0"):
        with pytest.raises(ConflictError):
            based_on(text)
    assert (etag("v"), undo_url(3), undo_url(0)) == ({"etag": '"v"'}, "/audit/3/undo", "")


def test_fields_of_forms() -> None:
    sent = Fields(FormData([("a", " x "), ("a", "y"), ("b", "1.5"), ("c", "z" * 200_001), ("file", cast("Any", object()))]))
    assert (sent.text("a"), sent.text("none"), sent.text("none", "d"), sent.all("a"), len(sent.text("c"))) == (
        "x",
        "",
        "d",
        [" x ", "y"],
        200_000,
    )
    assert (sent.number("b"), sent.number("a"), sent.number("none"), [name for name, _ in sent.items()]) == (
        1.5,
        None,
        None,
        ["a", "a", "b", "c"],
    )


class Batches:
    """Decisions of a live log: what is written after each number; some reads fail."""

    def __init__(self, *sent: bytes | None) -> None:
        self.sent = list(sent)
        self.asked: list[int] = []

    def start(self) -> int:
        return 40

    def after(self, reached: int, query: Any, writer: Any) -> tuple[int, bytes]:
        self.asked.append(reached)
        found = self.sent.pop(0) if self.sent else b""
        if found is None:
            raise StoreError("away")
        return reached + 1, found


def streamed(batches: Batches, start: int, rounds: int, state: Any = None) -> list[bytes]:
    """Reads a stream until its reader has gone; returns its pieces."""
    looks = iter([False] * rounds + [True])

    async def is_disconnected() -> bool:
        return next(looks)

    async def read() -> list[bytes]:
        reader: Any = SimpleNamespace(is_disconnected=is_disconnected)
        return [piece async for piece in stream(reader, cast("Any", batches), cast("Any", None), cast("Any", None), start, state)]

    return asyncio.run(read())


def test_a_stream_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    piece = 1 << 14
    batches = Batches(b"a", None, b"x" * (piece + 1))
    assert streamed(batches, 0, 3) == [b"retry: 2000\n\n", b"a", b": the database does not answer\n\n", b"x" * piece, b"x"]
    assert (batches.asked, pauses) == ([40, 41, 41], [0.5] * 3)
    batches = Batches()
    assert streamed(batches, 7, 21, lambda: "state") == [b"retry: 2000\n\n", b"state", b"state"]
    assert (batches.asked[0], len(batches.asked)) == (7, 21)
    monkeypatch.setattr(event_stream, "LONGEST_S", 1.0)
    batches = Batches()
    streamed(batches, 1, 9)
    assert len(batches.asked) == 2
    assert event("rows", "a\nb", 3) == "id: 3\nevent: rows\ndata: a\ndata: b\n\n"
    assert (event("rows", "a"), event("rows", "a", 0)) == ("event: rows\ndata: a\n\n", "id: 0\nevent: rows\ndata: a\n\n")
    assert [first_number(text) for text in ("", "x", "7", "9" * 18, "9" * 19)] == [0, 0, 7, 10**18 - 1, 0]

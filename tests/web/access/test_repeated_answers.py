"""Which requests with an `Idempotency-Key` are kept, and what is kept of their answers."""

import asyncio
import json
from typing import Any, cast

import pytest
from starlette.types import Message, Receive, Scope, Send

from gatewayfilter.errors import StoreError
from gatewayfilter.model import KeptAnswer
from gatewayfilter.store import Store
from gatewayfilter.web.access.idempotency import Idempotency

KEY = "idempotency-key"
PATH = "/api/v1/users"
LARGEST = 65_536


class Answers:
    """Answers that are kept, by their digests; the first one that is asked for may be there already."""

    def __init__(self, found: KeptAnswer | None = None, *, away: bool = False) -> None:
        self.kept_answers = self
        self.found, self.away = found, away
        self.begun: list[tuple[bytes, bytes, float]] = []
        self.finished: list[tuple[bytes, KeptAnswer | None]] = []

    def begin(self, digest: bytes, request: bytes, now: float) -> KeptAnswer | None:
        if self.away:
            raise StoreError("the database does not answer")
        self.begun.append((digest, request, now))
        return self.found

    def finish(self, digest: bytes, answer: KeptAnswer) -> None:
        self.finished.append((digest, answer))

    def abandon(self, digest: bytes) -> None:
        self.finished.append((digest, None))


class Served:
    """An application that gives one answer, after it has read the request."""

    def __init__(self, status: int = 201, body: tuple[bytes, ...] = (b"made",), *, fault: bool = False) -> None:
        self.status, self.body, self.fault = status, body, fault
        self.requests: list[bytes] = []
        self.after: Message = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            self.requests.append(b"other")
            return
        message = await receive()
        assert message["more_body"] is False or KEY.encode() not in dict(scope["headers"])
        self.requests.append(message["body"])
        self.after = await receive()
        headers = [(b"content-type", b"text/plain"), (b"location", b"/x"), (b"etag", b'"1"'), (b"set-cookie", b"secret")]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        for number, piece in enumerate(self.body, 1):
            if self.fault:
                raise RuntimeError
            await send({"type": "http.response.body", "body": piece, "more_body": number < len(self.body)})


def ask(
    app: Served, answers: Answers, *pieces: bytes, method: str = "POST", path: str = PATH, query: bytes = b"", **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """Sends a request in pieces; returns the answer."""
    sent: list[Message] = []
    coming: list[Message] = [
        {"type": "http.request", "body": piece, "more_body": number < len(pieces)}
        for number, piece in enumerate(pieces or (b"",), 1)
    ]

    async def receive() -> Message:
        return coming.pop(0) if coming else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    given = {KEY: "one"} | {name.replace("_", "-"): value for name, value in headers.items()}
    scope: Scope = {
        "type": "http", "method": method, "path": path, "query_string": query,
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in given.items() if value is not None],
    }  # fmt: skip
    asyncio.run(Idempotency(app, cast("Store", answers), lambda: 17.0)(scope, receive, send))
    start, *bodies = sent
    fields = {name.decode(): value.decode() for name, value in start["headers"]}
    return start["status"], fields, b"".join(message.get("body", b"") for message in bodies)


def test_an_answer_is_kept_without_its_secrets() -> None:
    app, answers = Served(body=(b"ma", b"de")), Answers()
    status, fields, body = ask(app, answers, b"a", b"b", query=b"x=1")
    assert (status, fields["set-cookie"], body, app.requests) == (201, "secret", b"made", [b"ab"])
    assert app.after == {"type": "http.disconnect"}
    ((digest, request, now),) = answers.begun
    headers = (("content-type", "text/plain"), ("location", "/x"), ("etag", '"1"'))
    assert (now, answers.finished) == (17.0, [(digest, KeptAnswer(request, 201, headers, b"made"))])


def test_digests_are_of_who_asks_and_of_the_whole_request() -> None:
    found = []
    for options in (
        {}, {"authorization": "a"}, {"cookie": "a"}, {"idempotency_key": "two"}, {"path": f"{PATH}/1"}, {"query": b"x"},
    ):  # fmt: skip
        answers = Answers()
        ask(Served(), answers, b"body", **cast("dict[str, Any]", options))
        found.append(answers.begun[0][:2])
    answers = Answers()
    ask(Served(), answers, b"other")
    whom, what = found[0]
    assert [digest == whom for digest, _ in found] == [True, False, False, False, True, True]
    assert [request == what for _, request in found] == [True, True, True, True, False, False]
    assert (answers.begun[0][0], answers.begun[0][1] == what) == (whom, False)
    shifted = Answers()
    ask(Served(), shifted, authorization="ab", cookie="c")
    other = Answers()
    ask(Served(), other, authorization="a", cookie="bc")
    assert shifted.begun[0][0] != other.begun[0][0]


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"method": "PUT"}, 201),
        ({"path": "/users"}, 201),
        ({"path": "/api/v1/session"}, 201),
        ({"path": "/api/v1/tokens/x"}, 201),
    ],
)
def test_other_requests_pass(options: dict[str, Any], status: int) -> None:
    app, answers = Served(), Answers()
    assert ask(app, answers, b"body", **options)[0] == status
    assert (app.requests, answers.begun) == ([b"body"], [])


def test_what_is_no_request_passes() -> None:
    app = Served()

    async def none(*_: Any) -> Any:
        raise AssertionError

    asyncio.run(Idempotency(app, cast("Store", Answers()))({"type": "lifespan"}, none, none))
    asyncio.run(Idempotency(app, cast("Store", Answers()))({"type": "websocket", "path": PATH, "headers": []}, none, none))
    assert app.requests == [b"other"] * 2


@pytest.mark.parametrize(
    ("key", "body", "status"),
    [
        ("x" * 255, b"", 201),
        ("x" * 256, b"", 422),
        ("", b"", 422),
        ("a\tb", b"", 422),
        ("one", b"x" * LARGEST, 201),
        ("one", b"x" * (LARGEST + 1), 413),
    ],
)
def test_keys_and_bodies_have_their_bounds(key: str, body: bytes, status: int) -> None:
    app, answers = Served(), Answers()
    found, _, told = ask(app, answers, body, idempotency_key=key)
    assert (found, len(app.requests), len(answers.begun)) == (status, *([1, 1] if status == 201 else [0, 0]))
    if status != 201:
        assert (
            json.loads(told)["detail"]
            == {
                422: "idempotency-key has 1 to 255 visible characters",
                413: "with idempotency-key a request has at most 65536 bytes",
            }[status]
        )


def test_a_client_that_goes_away_and_a_database_that_is_away() -> None:
    app, answers = Served(), Answers()
    pieces: list[Message] = [{"type": "http.request", "body": b"a", "more_body": True}]
    sent: list[Message] = []

    async def receive() -> Message:
        return pieces.pop(0) if pieces else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    scope: Scope = {"type": "http", "method": "POST", "path": PATH, "headers": [(KEY.encode(), b"one")]}
    asyncio.run(Idempotency(app, cast("Store", answers))(scope, receive, send))
    assert (sent[0]["status"], app.requests, answers.begun) == (413, [], [])
    status, _, told = ask(app, Answers(away=True))
    assert (status, json.loads(told)["detail"], app.requests) == (503, "the database does not answer", [])


@pytest.mark.parametrize(
    ("status", "kept"),
    [(200, True), (400, True), (401, False), (403, False), (429, False), (499, True), (500, False), (503, False)],
)
def test_what_was_not_done_is_not_kept(status: int, kept: bool) -> None:  # noqa: FBT001  a row of the table
    answers = Answers()
    assert ask(Served(status), answers)[0] == status
    ((_, answer),) = answers.finished
    assert (answer is not None) is kept


def test_an_answer_that_breaks_off_is_not_kept() -> None:
    answers = Answers()
    with pytest.raises(RuntimeError):
        ask(Served(fault=True), answers)
    assert [answer for _, answer in answers.finished] == [None]


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        ((b"x" * LARGEST,), b"x" * LARGEST),
        ((b"x" * LARGEST, b""), b"x" * LARGEST),
        ((b"x", b"y" * LARGEST), None),
        ((b"x" * LARGEST, b"y", b""), None),
    ],
)
def test_a_large_answer_is_sent_but_not_kept(body: tuple[bytes, ...], kept: bytes | None) -> None:
    answers = Answers()
    assert ask(Served(body=body), answers)[2] == b"".join(body)
    ((_, answer),) = answers.finished
    assert answer is not None
    assert answer.body == kept


def test_an_answer_is_repeated_to_the_same_request_only() -> None:
    first = Answers()
    ask(Served(), first, b"body")
    request = first.begun[0][1]
    app = Served()
    kept = KeptAnswer(request, 202, (("location", "/x"),), b"made")
    status, fields, body = ask(app, Answers(kept), b"body")
    assert (status, body, fields["location"], fields["idempotency-replayed"]) == (202, b"made", "/x", "true")
    for found, sent, refusal, why in (
        (kept, b"other", 422, "this idempotency-key was used for another request"),
        (KeptAnswer(request, 0, (), b""), b"body", 409, "the first request with this key is being answered"),
        (KeptAnswer(request, 201, (), None), b"body", 409, "this was done already; its answer was too large to be kept"),
    ):
        status, _, told = ask(app, Answers(found), sent)
        assert (status, json.loads(told)["detail"]) == (refusal, why)
    assert app.requests == []

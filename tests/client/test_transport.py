"""What the client's transport puts on the wire, and what it makes of answers."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from gatewayfilter.client import Client
from gatewayfilter.client.transport import Answer, ApiProblem, Call, Transport


class Served(HTTPServer):
    """Answers as the test says, and keeps what was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked = list[tuple[str, str, dict[str, str], bytes]]()
        self.answer: tuple[int, dict[str, str], bytes] = (200, {"Content-Type": "application/json"}, b'{"a": 1}')

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    """Answers any method."""

    server: Served

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.asked.append((self.command, self.path, {name.lower(): value for name, value in self.headers.items()}, body))
        status, headers, content = self.server.answer
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815  as the library has it

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def running() -> Iterator[Served]:
    with Served() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def served(running: Served, monkeypatch: pytest.MonkeyPatch) -> Served:
    monkeypatch.setattr(running, "answer", running.answer)
    running.asked.clear()
    return running


def sent(served: Served, call: Call) -> tuple[str, str, dict[str, str], bytes]:
    Transport(f"{served.url}/", "secret").send(call)
    return served.asked.pop()


def test_the_head_of_a_request(served: Served) -> None:
    parameters = {"name": "a/../b?c#d é", "number": 7}
    query = {"after": None, "limit": 10, "kinds": ["a", "b"], "all": True, "none": False, "text": "x y&z"}
    method, path, headers, body = sent(
        served, Call("GET", "/api/v1/{name}/{number}", parameters, query, {"if-match": '"7"', "x-empty": ""})
    )
    assert (method, body) == ("GET", b"")
    assert path == ("/api/v1/a%2F..%2Fb%3Fc%23d%20%C3%A9/7?limit=10&kinds=a&kinds=b&all=true&none=false&text=x+y%26z"), (
        "no // before it, and no parameter leaves its place"
    )
    assert (headers["authorization"], headers["if-match"]) == ("Bearer secret", '"7"')
    assert headers.keys().isdisjoint({"x-empty", "content-type"})
    assert sent(served, Call("DELETE", "/api/v1/x", query={"after": None}))[:2] == ("DELETE", "/api/v1/x")


@pytest.mark.parametrize(
    ("call", "content_type", "content"),
    [
        (Call("POST", "/x", body={"é": [1, None]}), "application/json", b'{"\\u00e9": [1, null]}'),
        (Call("POST", "/x", body=[]), "application/json", b"[]"),
        (Call("PUT", "/x", body=b"\x00raw"), "application/octet-stream", b"\x00raw"),
        (Call("PUT", "/x", body=b"<xml>", headers={"Content-Type": "text/xml"}), "text/xml", b"<xml>"),
    ],
)
def test_bodies(served: Served, call: Call, content_type: str, content: bytes) -> None:
    _, _, headers, body = sent(served, call)
    assert (headers["content-type"], body) == (content_type, content)


def test_a_file_is_sent_as_a_form(served: Served) -> None:
    boundaries = set[str]()
    for _ in range(2):
        _, _, headers, body = sent(served, Call("POST", "/x", body=b"PK\r\n--", upload="file"))
        kind, _, boundary = headers["content-type"].partition("; boundary=")
        assert kind == "multipart/form-data"
        assert len(boundary) == 32
        disposition = 'Content-Disposition: form-data; name="file"; filename="file"'
        assert body == f"--{boundary}\r\n{disposition}\r\n\r\nPK\r\n--\r\n--{boundary}--\r\n".encode()
        boundaries.add(boundary)
    assert len(boundaries) == 2, "no content can guess it"


def test_answers(served: Served) -> None:
    transport = Transport(served.url, "secret")
    assert transport.send(Call("GET", "/x")) == Answer({"a": 1}, "", 200)
    served.answer = (201, {"Content-Type": "application/json; charset=utf-8", "ETag": '"8"'}, b"[]")
    assert transport.send(Call("GET", "/x")) == Answer([], '"8"', 201)
    served.answer = (200, {"Content-Type": "application/zip"}, b'{"a": 1}')
    assert transport.send(Call("GET", "/x")) == Answer(b'{"a": 1}', "", 200)
    served.answer = (204, {"Content-Type": "application/json"}, b"")
    assert transport.send(Call("DELETE", "/x")) == Answer(b"", "", 204)


@pytest.mark.parametrize(
    ("status", "content", "text", "errors"),
    [
        (
            422,
            json.dumps({"title": "Unprocessable", "detail": "no", "errors": [{"field": "name", "detail": "too long"}]}).encode(),
            "422 Unprocessable: no",
            ({"field": "name", "detail": "too long"},),
        ),
        (409, b'{"title": "Conflict", "detail": "taken"}', "409 Conflict: taken", ()),
        (502, b" <html>\xff" + b"x" * 300, f"502 Bad Gateway: <html>\ufffd{'x' * 192}", ()),
        (500, b'{"detail": "no title"}', '500 Internal Server Error: {"detail": "no title"}', ()),
        (500, b"[]", "500 Internal Server Error: []", ()),
        (302, b"", "302 Found: ", ()),  # a token does not go elsewhere
    ],
)
def test_refusals(served: Served, status: int, content: bytes, text: str, errors: tuple[Any, ...]) -> None:
    served.answer = (status, {"Location": f"{served.url}/elsewhere"}, content)
    with pytest.raises(ApiProblem) as caught:
        Transport(served.url, "secret").send(Call("GET", "/x"))
    problem = caught.value
    assert (str(problem), problem.status, problem.errors) == (text, status, errors)
    assert f"{problem.status} {problem.title}: {problem.detail}" == text
    assert len(served.asked) == 1


def test_an_authority_of_the_dashboards_own(tmp_path: Path, served: Served) -> None:
    with pytest.raises(OSError, match="No such file"):
        Client("https://127.0.0.1:1", "t", ca_file=str(tmp_path / "none.pem"))
    with pytest.raises(OSError, match="refused"):
        Transport("https://127.0.0.1:1", "t").send(Call("GET", "/x"))
    assert list(Client(served.url, "t", timeout_s=5.0).status.get_status().value) == ["a"]
    assert urlsplit(served.asked[0][1]).path == "/api/v1/status"


def test_the_environments_proxy_is_not_used(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    assert Transport(served.url, "t").send(Call("GET", "/x")).status == 200

"""When a download is tried again, how long it waits, and where it is not led."""

from contextlib import nullcontext
from email.message import Message
from email.utils import formatdate
from io import BytesIO
from pathlib import Path
from typing import Any, cast
from urllib.error import HTTPError, URLError
from urllib.request import Request

import pytest

from gatewayfilter.errors import SourceError
from gatewayfilter.sources.download import http_download
from gatewayfilter.sources.download.http_download import TemporaryError, Validators, _Redirects, _retry_after_s, download
from tests.case_tables import all_cases

NOW = 1_700_000_000.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("", 0.0),
        ("7", 7.0),
        (" 120 ", 120.0),
        ("9" * 12, 999_999_999.0),
        ("-5", 0.0),
        ("\u0665", 0.0),
        ("soon", 0.0),
        (formatdate(NOW + 90, usegmt=True), 90.0),
        (formatdate(NOW - 90, usegmt=True), 0.0),
    ],
)
def test_how_long_a_server_asks_to_wait(text: str, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: NOW)
    headers = Message()
    if text:
        headers["Retry-After"] = text
    assert _retry_after_s(headers) == seconds


@pytest.mark.parametrize(
    ("failures", "waits", "ends"),
    [
        ([], [], True),
        ([0.0], [1.0], True),
        ([0.0, 0.0], [1.0, 2.0], True),
        ([5.0, 1.0], [5.0, 2.0], True),
        ([0.0, 0.0, 0.0], [1.0, 2.0], False),
        ([10.0], [10.0], True),
        ([10.1], [], False),
        ([0.0, 11.0], [1.0], False),
    ],
)
def test_a_temporary_failure_is_tried_again_twice(
    failures: list[float], waits: list[float], *, ends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, waited, new = list(failures), list[float](), Validators("new")

    def attempt(*_: object) -> Validators:
        if left:
            raise TemporaryError("busy", left.pop(0))
        return new

    monkeypatch.setattr(http_download, "_try", attempt)
    monkeypatch.setattr("random.random", lambda: 0.5)

    def whole() -> Validators | None:
        return download("http://a/", Path("x"), Validators(), max_bytes=1, timeout_s=1.0, sleep=waited.append)

    if ends:
        assert whole() is new
    else:
        with pytest.raises(TemporaryError) as raised:
            whole()
        assert raised.value.retry_after_s == failures[-1]
    assert waited == [wait * 1.25 for wait in waits]
    assert left == []


@all_cases(
    ("begin", "to", "followed"),
    [
        ("http://a.test/", "http://b.test/", True),
        ("http://a.test/", "https://b.test/", True),
        ("https://a.test/", "https://b.test/", True),
        ("https://a.test/", "http://b.test/", False),
        ("http://a.test/", "ftp://b.test/", False),
        ("http://a.test/", "file:///etc/passwd", False),
    ],
)
def test_where_a_redirect_may_lead(begin: str, to: str, *, followed: bool) -> None:
    def redirected() -> Request | None:
        return _Redirects().redirect_request(Request(begin), cast("Any", None), 302, "Found", cast("Any", Message()), to)

    if followed:
        found = redirected()
        assert found is not None
        assert found.full_url == to
    else:
        with pytest.raises(SourceError, match="not followed"):
            redirected()
    assert _Redirects.max_redirections == 5


class Answer:
    """A response in pieces."""

    def __init__(self, *pieces: bytes, length: str = "") -> None:
        self.pieces = [*pieces, b""]
        self.headers = {"Content-Length": length} if length else {}
        self.chunked = False

    def read1(self, most: int) -> bytes:
        assert most == 65_536
        return self.pieces.pop(0)


@pytest.mark.parametrize(
    ("answer", "most", "now", "last", "why"),
    [
        (Answer(b"ab", b"c\n", length="4"), 4, 5.0, b"\n", ""),
        (Answer(b"ab", b"cd"), 4, 5.0, b"d", ""),
        (Answer(), 4, 5.0, b"", ""),
        (Answer(b"abcde"), 4, 5.0, b"", "larger than 4 bytes"),
        (Answer(b"abc", length="4"), 4, 5.0, b"", "cut off after 3 of 4 bytes"),
        (Answer(b"abcd", length="3"), 4, 5.0, b"", "cut off after 4 of 3 bytes"),
        (Answer(b"abc", length="x"), 4, 5.0, b"c", ""),
        (Answer(b"abc"), 4, 5.1, b"", "late"),
    ],
)
def test_a_body_is_bounded_in_bytes_and_time(
    answer: Answer, most: int, now: float, last: bytes, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.monotonic", lambda: now)
    told: list[tuple[int, int]] = []
    written = sum(map(len, answer.pieces))

    def saved() -> bytes:
        return http_download._save(cast("Any", answer), tmp_path / "body", most, 5.0, lambda *step: told.append(step))

    if why == "late":
        with pytest.raises(TimeoutError):
            saved()
    elif why:
        with pytest.raises(SourceError, match=why):
            saved()
    else:
        assert saved() == last
        assert (tmp_path / "body").stat().st_mode & 0o777 == 0o600
        assert [total for _, total in told] == [4 if answer.headers.get("Content-Length") == "4" else 0] * len(told)
        assert [size for size, _ in told] == sorted({size for size, _ in told})
        assert max([size for size, _ in told], default=0) == (tmp_path / "body").stat().st_size == written


class Opened:
    """Opens what is requested; the answer has no length."""

    def __init__(self, answer: Answer, seen: list[Request]) -> None:
        self._answer, self._seen = answer, seen

    def open(self, request: Request, timeout: float) -> Any:
        assert timeout == 7.0
        self._seen.append(request)
        return nullcontext(self._answer)


@pytest.mark.parametrize(
    ("known", "conditions"),
    [
        (Validators(), {}),
        (Validators('"e"'), {"If-none-match": '"e"'}),
        (Validators(last_modified="Mon"), {"If-modified-since": "Mon"}),
        (Validators('"e"', "Mon"), {"If-none-match": '"e"', "If-modified-since": "Mon"}),
    ],
)
@pytest.mark.parametrize(
    ("body", "length", "chunked", "may_be_cut"),
    [
        (b"a\nb", "", False, True),
        (b"a\nb\n", "", False, False),
        (b"a\nb", "3", False, False),
        (b"a\nb", "", True, False),
    ],
)
def test_a_request_names_the_copy_at_hand_and_its_answer_is_noted(
    known: Validators,
    conditions: dict[str, str],
    body: bytes,
    length: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    chunked: bool,
    may_be_cut: bool,
) -> None:
    answer = Answer(body, length=length)
    answer.headers |= {"ETag": '"new"', "Last-Modified": "Tue"}
    answer.chunked = chunked
    seen: list[Request] = []
    monkeypatch.setattr(http_download, "_opener", lambda: Opened(answer, seen))
    found = download("http://a.test/", tmp_path / "body", known, max_bytes=9, timeout_s=7.0)
    assert found == Validators('"new"', "Tue", may_be_cut)
    (request,) = seen
    sent = dict(request.header_items())
    assert sent.pop("User-agent").startswith("GatewayFilter/")
    assert sent == {"Accept-encoding": "gzip"} | conditions


class Refusing:
    """Fails to open anything."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def open(self, request: Request, timeout: float) -> Any:
        raise self._error


def status(code: int, retry_after: str = "") -> HTTPError:
    headers = Message()
    if retry_after:
        headers["Retry-After"] = retry_after
    return HTTPError("http://a.test/", code, "", headers, BytesIO())


@pytest.mark.parametrize(
    ("error", "kind", "told"),
    [
        (status(304), None, ""),
        (status(503, "99"), TemporaryError, "http://a.test/ answers 503"),
        (status(429), TemporaryError, "http://a.test/ answers 429"),
        (status(300), SourceError, "http://a.test/ redirects too often or nowhere"),
        (status(399), SourceError, "http://a.test/ redirects too often or nowhere"),
        (status(299), SourceError, "http://a.test/ answers 299"),
        (status(400), SourceError, "http://a.test/ answers 400"),
        (status(404), SourceError, "http://a.test/ answers 404"),
        (TimeoutError(), TemporaryError, "http://a.test/ took longer than 7 s"),
        (URLError("no route"), TemporaryError, "cannot reach http://a.test/: no route"),
        (URLError(OSError(111, "Connection refused")), TemporaryError, "cannot reach http://a.test/: Connection refused"),
        (URLError(OSError("odd")), TemporaryError, "cannot reach http://a.test/: odd"),
        (ConnectionResetError(), TemporaryError, "http://a.test/ was cut off: ConnectionResetError"),
        (ValueError(), SourceError, "http://a.test/ is no web address"),
    ],
)
def test_what_a_failure_means(
    error: Exception, kind: type[SourceError] | None, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_download, "_opener", lambda: Refusing(error))

    def tried() -> Validators | None:
        return http_download._try("http://a.test/", tmp_path / "body", Validators(), 9, 7.0, None)

    if kind is None:
        assert tried() is None
        return
    with pytest.raises(SourceError) as raised:
        tried()
    assert (type(raised.value), str(raised.value)) == (kind, told)
    if isinstance(raised.value, TemporaryError):
        assert raised.value.retry_after_s == (99.0 if "503" in told else 0.0)

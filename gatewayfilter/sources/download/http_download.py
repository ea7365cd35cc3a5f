"""The HTTP download of a list into a file: http(s) only, TLS verified, bounded in time, size and redirects."""

import http.client
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from email.message import Message
from email.utils import parsedate_to_datetime
from http.client import HTTPMessage
from pathlib import Path
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, Request, build_opener

from gatewayfilter import __version__
from gatewayfilter.errors import SourceError
from gatewayfilter.private_files import private

_CHUNK = 65_536
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_TRIES = 3
_FIRST_WAIT_S = 1.0
_LONGEST_WAIT_S = 10.0
"""A longer wait is left to the next update: other sources wait behind this one."""


@dataclass(frozen=True, slots=True)
class Validators:
    """Validators and metadata of the copy we hold, for conditional requests.

    Attributes:
        may_be_cut: no length was announced, and the copy ends within a line.
    """

    etag: str = ""
    last_modified: str = ""
    may_be_cut: bool = False


type Received = Callable[[int, int], None]
"""Called with how many bytes have come, and how many there will be (0: unknown)."""


class TemporaryError(SourceError):
    """A failure that is likely to be temporary.

    Attributes:
        retry_after_s: Retry-After of the server, 0 for none.
    """

    def __init__(self, sentence: str, retry_after_s: float = 0.0) -> None:
        super().__init__(sentence)
        self.retry_after_s = retry_after_s


class _Redirects(HTTPRedirectHandler):
    max_redirections = 5

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        """Follows to http(s) only, and never from https to http."""
        scheme = urlsplit(newurl).scheme
        if scheme not in {"http", "https"} or (req.type == "https" and scheme == "http"):
            raise SourceError(f"{req.full_url} leads to {newurl}, which is not followed")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener() -> OpenerDirector:
    return build_opener(_Redirects())


def is_web_address(address: str) -> bool:
    """Returns whether an address is downloaded; everything else is a path."""
    return address.lower().startswith(("http://", "https://"))


def download(
    address: str,
    target: Path,
    known: Validators,
    *,
    max_bytes: int,
    timeout_s: float,
    sleep: Callable[[float], None] = time.sleep,
    received: Received | None = None,
) -> Validators | None:
    """Downloads into `target`; a temporary failure is retried twice, after about 1 and 2 s.

    A server with a longer Retry-After is not tried again; the error has `retry_after_s`.

    Args:
        address: http or https.
        target: written again; holds the body as it came, perhaps compressed.
        known: validators of the copy at hand.
        max_bytes: the largest body taken.
        timeout_s: the longest time for one try, and for silence of the server.
        sleep: waits between two tries.
        received: called with the progress.

    Returns:
        The new validators, or `None` when nothing changed since `known`.

    Raises:
        SourceError: it could not be downloaded; with the reason.
    """
    for attempt in range(_TRIES):
        try:
            return _try(address, target, known, max_bytes, timeout_s, received)
        except TemporaryError as error:
            wait_s = max(error.retry_after_s, _FIRST_WAIT_S * 2**attempt)
            if attempt == _TRIES - 1 or wait_s > _LONGEST_WAIT_S:
                raise
            # Jitter: clients that failed together must not retry together.
            sleep(wait_s * (1 + random.random() / 2))  # noqa: S311  spreads, hides nothing
    raise AssertionError("unreachable")


def _try(
    address: str, target: Path, known: Validators, max_bytes: int, timeout_s: float, received: Received | None
) -> Validators | None:
    headers = {"User-Agent": f"GatewayFilter/{__version__}", "Accept-Encoding": "gzip"}
    if known.etag:
        headers["If-None-Match"] = known.etag
    if known.last_modified:
        headers["If-Modified-Since"] = known.last_modified
    deadline = time.monotonic() + timeout_s
    try:
        with _translated(address, timeout_s):
            request = Request(address, headers=headers)  # noqa: S310  the scheme was checked, redirects are
            with _opener().open(request, timeout=timeout_s) as response:
                last = _save(response, target, max_bytes, deadline, received)
                may_be_cut = last != b"\n" and "Content-Length" not in response.headers and not response.chunked
                return Validators(response.headers.get("ETag", ""), response.headers.get("Last-Modified", ""), may_be_cut)
    except HTTPError as error:
        with error:
            if error.code == http.client.NOT_MODIFIED:
                return None
            if error.code in _PASSING:
                raise TemporaryError(f"{address} answers {error.code}", _retry_after_s(error.headers)) from error
            if 300 <= error.code < 400:
                raise SourceError(f"{address} redirects too often or nowhere") from error
            raise SourceError(f"{address} answers {error.code}") from error


@contextmanager
def _translated(address: str, timeout_s: float) -> Iterator[None]:
    """Turns what the library raises into our errors, all but HTTPError."""
    try:
        yield
    except HTTPError:
        raise
    except TimeoutError as error:
        raise TemporaryError(f"{address} took longer than {timeout_s:g} s") from error
    except URLError as error:
        reason = error.reason
        why = reason.strerror if isinstance(reason, OSError) and reason.strerror else reason
        raise TemporaryError(f"cannot reach {address}: {why}") from error
    except (http.client.HTTPException, ConnectionError) as error:
        raise TemporaryError(f"{address} was cut off: {type(error).__name__}") from error
    except ValueError as error:
        raise SourceError(f"{address} is no web address") from error


def _retry_after_s(headers: Message) -> float:
    """Returns the delay of Retry-After, in seconds or as a date; 0 for nothing that can be read. Source: [RFC 9110 §10.2.3]."""
    text = headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    with suppress(ValueError, TypeError, OverflowError):
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    return 0.0


def _save(response: http.client.HTTPResponse, target: Path, max_bytes: int, deadline: float, received: Received | None) -> bytes:
    """Writes the body. Returns its last byte."""
    announced = response.headers.get("Content-Length", "")
    size = 0
    last = b""
    with open(target, "wb", opener=private) as file:
        while chunk := response.read1(_CHUNK):
            size += len(chunk)
            if size > max_bytes:
                raise SourceError(f"it is larger than {max_bytes:,} bytes (sources.max_bytes)")
            if time.monotonic() > deadline:
                raise TimeoutError
            file.write(chunk)
            last = chunk[-1:]
            if received:
                received(size, int(announced) if announced.isdigit() else 0)
    if announced.isdigit() and size != int(announced):
        raise TemporaryError(f"it was cut off after {size:,} of {int(announced):,} bytes")
    return last

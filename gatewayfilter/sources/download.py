"""Downloads a list into a file: http(s) only, TLS verified, bounded in time, size and redirects."""

import http.client
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, Request, build_opener

from gatewayfilter import __version__
from gatewayfilter.errors import SourceError

_CHUNK = 65_536
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_TRIES = 3
_FIRST_WAIT_S = 1.0


@dataclass(frozen=True, slots=True)
class Validators:
    """What a server said of the copy we hold, to ask it for news only."""

    etag: str = ""
    last_modified: str = ""


class _PassingError(SourceError):
    """A failure that may be gone in a moment."""


class _Redirects(HTTPRedirectHandler):
    max_redirections = 5

    def redirect_request(self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str) -> Request | None:
        """Follows to http(s) only, and never from https to http."""
        scheme = urlsplit(newurl).scheme
        if scheme not in {"http", "https"} or (req.type == "https" and scheme == "http"):
            raise SourceError(f"{req.full_url} leads to {newurl}, which is not followed")
        return super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]  # typeshed wants HTTPMessage


def _opener() -> OpenerDirector:
    return build_opener(_Redirects())


def is_web_address(address: str) -> bool:
    """Tells whether an address is downloaded; everything else is a path."""
    return address.lower().startswith(("http://", "https://"))


def download(
    address: str,
    target: Path,
    known: Validators,
    *,
    max_bytes: int,
    timeout_s: float,
    sleep: Callable[[float], None] = time.sleep,
) -> Validators | None:
    """Downloads into `target`; a failure that may pass is tried twice more, after 1 and 2 s.

    Args:
        address: http or https.
        target: written anew; holds the body as it came, perhaps compressed.
        known: validators of the copy at hand.
        max_bytes: the largest body taken.
        timeout_s: the longest time for one try, and for silence of the server.
        sleep: waits between two tries.

    Returns:
        The new validators, or `None` when nothing changed since `known`.

    Raises:
        SourceError: it could not be downloaded; says why.
    """
    for attempt in range(_TRIES):
        try:
            return _try(address, target, known, max_bytes, timeout_s)
        except _PassingError:
            if attempt == _TRIES - 1:
                raise
            sleep(_FIRST_WAIT_S * 2**attempt)
    raise AssertionError("unreachable")


def _try(address: str, target: Path, known: Validators, max_bytes: int, timeout_s: float) -> Validators | None:
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
                _save(response, target, max_bytes, deadline)
                return Validators(response.headers.get("ETag", ""), response.headers.get("Last-Modified", ""))
    except HTTPError as error:
        with error:
            if error.code == http.client.NOT_MODIFIED:
                return None
            if error.code in _PASSING:
                raise _PassingError(f"{address} answers {error.code}") from error
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
        raise _PassingError(f"{address} took longer than {timeout_s:g} s") from error
    except URLError as error:
        raise _PassingError(f"cannot reach {address}: {error.reason}") from error
    except (http.client.HTTPException, ConnectionError) as error:
        raise _PassingError(f"{address} was cut off: {type(error).__name__}") from error
    except ValueError as error:
        raise SourceError(f"{address} is no web address") from error


def _save(response: http.client.HTTPResponse, target: Path, max_bytes: int, deadline: float) -> None:
    announced = response.headers.get("Content-Length", "")
    size = 0
    with target.open("wb") as file:
        while chunk := response.read1(_CHUNK):
            size += len(chunk)
            if size > max_bytes:
                raise SourceError(f"it is larger than {max_bytes:,} bytes (sources.max_bytes)")
            if time.monotonic() > deadline:
                raise TimeoutError
            file.write(chunk)
    if announced.isdigit() and size != int(announced):
        raise _PassingError(f"it was cut off after {size:,} of {int(announced):,} bytes")

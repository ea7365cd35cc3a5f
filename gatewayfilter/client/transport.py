"""Requests to the API over the standard library's HTTP client."""

import json
import secrets
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast
from urllib.parse import quote, urlencode, urlsplit

MAX_ANSWER: Final = 256 << 20
"""Bytes of an answer."""


class ApiProblem(Exception):  # noqa: N818  the term of RFC 9457
    """An error that the API answered with (RFC 9457).

    Attributes:
        status: HTTP status.
        title: of the status.
        detail: one sentence.
        errors: wrong fields: `field` and `detail` of each.
    """

    def __init__(self, status: int, title: str, detail: str, errors: tuple[Mapping[str, str], ...] = ()) -> None:
        super().__init__(f"{status} {title}: {detail}")
        self.status, self.title, self.detail, self.errors = status, title, detail, errors


@dataclass(frozen=True, slots=True)
class Answer[T]:
    """An answer.

    Attributes:
        value: its content; bytes where it is not JSON.
        etag: version of what was read or changed, for `if_match` of the next change; `""` for none.
        status: HTTP status.
    """

    value: T
    etag: str
    status: int


@dataclass(frozen=True, slots=True)
class Call:
    """A request of an operation.

    Attributes:
        path: with its parameters in braces.
        parameters: values of those.
        query: `None` and what is not given are left out.
        headers: empty values are left out.
        body: sent as JSON; bytes as they are; `None` for none.
        upload: name of the form's field in which a body of bytes is sent, `""` for none.
    """

    method: str
    path: str
    parameters: Mapping[str, object] = field(default_factory=dict)
    query: Mapping[str, object] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: object = None
    upload: str = ""


class Transport:
    """Sends requests to one dashboard.

    Args:
        url: of the dashboard, as `https://192.168.1.1:8081`.
        token: an API token.
        timeout_s: for one answer.
        ca_file: PEM file of the authority that signed the dashboard's certificate, `""` for the system's.
    """

    def __init__(self, url: str, token: str, *, timeout_s: float = 30.0, ca_file: str = "") -> None:
        if urlsplit(url).scheme not in {"http", "https"}:
            raise ValueError(f"the address of a dashboard begins with http:// or https://, not {url!r}")
        self._base = url.rstrip("/")
        self._token = token
        self._timeout_s = timeout_s
        handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]  # never through the filter itself
        if ca_file:
            handlers.append(urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=ca_file)))
        self._opener = urllib.request.build_opener(*handlers, _NoRedirect)

    def send(self, call: Call) -> Answer[Any]:
        """Sends a request and returns its answer.

        Raises:
            ApiProblem: the API refuses.
            OSError: it does not answer.
        """
        path = call.path
        for name, value in call.parameters.items():
            path = path.replace(f"{{{name}}}", quote(str(value), safe=""))
        query = {name: _text(value) for name, value in call.query.items() if value is not None}
        headers = {name: value for name, value in call.headers.items() if value}
        headers["Authorization"] = f"Bearer {self._token}"
        content: bytes | None = None
        if isinstance(call.body, bytes) and call.upload:
            boundary = secrets.token_hex(16)
            content, headers["Content-Type"] = (
                _form(call.upload, call.body, boundary),
                f"multipart/form-data; boundary={boundary}",
            )
        elif isinstance(call.body, bytes):
            content, headers["Content-Type"] = call.body, headers.get("Content-Type", "application/octet-stream")
        elif call.body is not None:
            content, headers["Content-Type"] = json.dumps(call.body).encode(), "application/json"
        url = self._base + path + (f"?{urlencode(query, doseq=True)}" if query else "")
        request = urllib.request.Request(url, content, headers, method=call.method)  # noqa: S310  the scheme is checked above
        try:
            with self._opener.open(request, timeout=self._timeout_s) as response:
                return Answer(_content(response), response.headers.get("ETag", ""), response.status)
        except urllib.error.HTTPError as error:
            with error:
                raise _problem(error) from None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows nothing: a token must not go elsewhere."""

    def redirect_request(self, *_: object, **__: object) -> None:
        return None


def _form(name: str, content: bytes, boundary: str) -> bytes:
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"; filename="{name}"\r\n\r\n'
    return head.encode() + content + f"\r\n--{boundary}--\r\n".encode()


def _text(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value


def _content(response: Any) -> Any:
    body = cast("bytes", response.read(MAX_ANSWER))
    if body and response.headers.get_content_type() == "application/json":  # an answer 204 has a type alone
        return json.loads(body)
    return body


def _problem(error: urllib.error.HTTPError) -> ApiProblem:
    body = error.read(1 << 20)
    try:
        found = json.loads(body)
        return ApiProblem(error.code, str(found["title"]), str(found["detail"]), tuple(found.get("errors", ())))
    except (ValueError, KeyError, TypeError):
        return ApiProblem(error.code, error.reason, body[:200].decode(errors="replace").strip())

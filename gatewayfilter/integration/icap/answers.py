"""ICAP answers as bytes."""

from typing import Final

from gatewayfilter.integration.icap.messages import HttpHead
from gatewayfilter.interfaces import InternalAnswer

CONTINUE: Final = b"ICAP/1.0 100 Continue\r\n\r\n"
END: Final = b"0\r\n\r\n"
ORIGINAL_BODY: Final = b"0; use-original-body=0\r\n\r\n"
"""The end of a 206 whose body is the original one."""
_PHRASES: Final = {
    200: "OK",
    204: "No Content",
    206: "Partial Content",
    400: "Bad Request",
    404: "Service Not Found",
    405: "Method Not Allowed",
    500: "Server Error",
    503: "Service Overloaded",
    505: "Version Not Supported",
}
_HTTP_PHRASES: Final = {200: "OK", 303: "See Other", 400: "Bad Request", 403: "Forbidden", 503: "Service Unavailable"}


def head(status: int, tag: str, encapsulated: str, *further: str, closes: bool = False) -> bytes:
    """Returns the head of an answer.

    Args:
        status: of ICAP.
        tag: ISTag, without quotation marks.
        encapsulated: what follows.
        further: lines of the head.
        closes: the connection is closed behind it.
    """
    lines = [
        f"ICAP/1.0 {status} {_PHRASES[status]}",
        f'ISTag: "{tag}"',
        f"Encapsulated: {encapsulated}",
        *further,
        *(["Connection: close"] if closes else []),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii")


def options(tag: str, method: str, preview: int, connections: int) -> bytes:
    """Returns the answer to OPTIONS."""
    return head(
        200,
        tag,
        "null-body=0",
        f"Methods: {method}",
        "Service: GatewayFilter",
        "Allow: 204, 206",
        f"Preview: {preview}",
        "Transfer-Preview: *",
        f"Max-Connections: {connections}",
        "Options-TTL: 60",
    )


def unchanged_head(status: int, tag: str, http: HttpHead, kind: str, *, has_body: bool) -> bytes:
    """Returns the beginning of an answer that sends a message back as it came; `kind` is `req` or `res`."""
    body = f"{kind}-body" if has_body else "null-body"
    return head(status, tag, f"{kind}-hdr=0, {body}={len(http.raw)}") + http.raw


def chunk(data: bytes) -> bytes:
    """Returns a chunk of a body."""
    return b"".join((b"%x\r\n" % len(data), data, b"\r\n"))


def page(tag: str, answer: InternalAnswer, *, closes: bool) -> bytes:
    """Returns a response of ours in place of the request or response."""
    lines = [f"HTTP/1.1 {answer.status} {_HTTP_PHRASES.get(answer.status, 'Answer')}"]
    lines += [f"{name}: {value}" for name, value in answer.headers.items() if name.lower() != "content-length"]
    http = ("\r\n".join([*lines, f"content-length: {len(answer.content)}"]) + "\r\n\r\n").encode("latin-1", "replace")
    body = "res-body" if answer.content else "null-body"
    start = head(200, tag, f"res-hdr=0, {body}={len(http)}", closes=closes) + http
    return start + chunk(answer.content) + END if answer.content else start

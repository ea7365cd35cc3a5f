"""Searches that are posted: forms and JSON bodies of requests to search engines, read and judged before they are sent on."""

from collections.abc import Mapping
from enum import Enum
from typing import Final

from mitmproxy import http

from gatewayfilter.content_encoding import EncodingError, decode_up_to
from gatewayfilter.model import JudgeForm, Verdict
from gatewayfilter.proxy.request.enforced_search import with_parameters

MOST_BYTES: Final = 262_144
_MOST_DIGITS: Final = 9


class FormKind(Enum):
    """What a body is, as far as it matters here."""

    FORM = "form"
    TEXT = "text"
    OTHER = "other"


def form_kind(headers: Mapping[bytes, str]) -> tuple[FormKind, bool]:
    """Returns what the body of a request is, and whether it can be read: its length is known and bounded.

    Args:
        headers: lower-case name → value.
    """
    declared = headers.get(b"content-type", "").partition(";")[0].strip().lower()
    if declared.startswith(("multipart/", "image/", "audio/", "video/", "application/octet-stream")):
        return FormKind.OTHER, False
    length = headers.get(b"content-length", "")
    readable = length.isdecimal() and len(length) <= _MOST_DIGITS and int(length) <= MOST_BYTES
    kind = FormKind.FORM if declared in {"", "application/x-www-form-urlencoded"} else FormKind.TEXT
    return kind, readable and b"transfer-encoding" not in headers


def judge_body(request: http.Request, form: JudgeForm) -> Verdict | None:
    """Returns the block of a request whose body has arrived, `None` where it may go on; puts enforced parameters into a form."""
    raw = request.data.content or b""
    encoding = str(request.headers.get("content-encoding", ""))
    body: bytes | None = raw
    if encoding:
        try:
            body, cut = decode_up_to(raw, encoding, MOST_BYTES)
        except EncodingError:
            cut = True
        if cut:
            body = None
    block = form.judge(body) if form.judges else None
    declared = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if block is None and body and form.parameters and declared == "application/x-www-form-urlencoded":
        request.data.content = with_parameters(body.decode("latin-1"), form.parameters).encode("latin-1")
        request.headers.pop("content-encoding", None)
        request.headers["content-length"] = str(len(request.data.content))
    return block

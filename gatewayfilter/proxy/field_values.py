"""Header field values that end a line for some readers and not for others.

mitmproxy hands a lone CR, a NUL and a folded line on as they came. A server that takes the CR for the end of a line sees fields,
and whole requests, that nobody has judged. A request with one is refused, a response is mended, as the standards ask.

Source: RFC 9110 §5.5, RFC 9112 §2.2 and §5.2.
"""

import re
from typing import Final

from mitmproxy import http

_BREAKS: Final = re.compile(rb"[ \t]*[\r\n\0]+[ \t\r\n\0]*")


def holds_breaks(fields: tuple[tuple[bytes, bytes], ...]) -> bool:
    """Returns whether a value has a CR, LF or NUL in it. One search through all: it is asked for each message."""
    values = b"".join([value for _, value in fields])
    return b"\r" in values or b"\n" in values or b"\0" in values


def unfold(headers: http.Headers) -> None:
    """Puts a space in the place of each line break and NUL in a response's values."""
    if holds_breaks(headers.fields):
        headers.fields = tuple((name, _BREAKS.sub(b" ", value)) for name, value in headers.fields)

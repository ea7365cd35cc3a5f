"""Streaming body rewriting: bodies are decoded, passed through a stage, and sent on as they arrive.

A stage that needs the whole text (`$replace`, `##^`) holds at most `MOST_HELD` bytes; a longer body passes unchanged.
"""

import codecs
import re
import time
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from gatewayfilter.content_encoding import EncodingError, StreamDecoder
from gatewayfilter.model import BodyEdit
from gatewayfilter.proxy.response.css_injector import meta_charset
from gatewayfilter.proxy.response.element_remover import remove_elements

MOST_HELD: Final = 2_000_000
_EDIT_TIME_S: Final = 0.5
"""After this time no further replacement is begun in a body: the event loop waits meanwhile."""

_CHARSET = re.compile(r"charset\s*+=\s*+[\"']?\s*+([^\s;\"']{1,40})", re.IGNORECASE)
_AS_BROWSERS: Final = {
    "gb2312": "gb18030", "gbk": "gb18030", "x-gbk": "gb18030", "big5": "big5hkscs", "shift_jis": "cp932", "shift-jis": "cp932",
    "sjis": "cp932", "x-sjis": "cp932", "euc-kr": "cp949", "ks_c_5601-1987": "cp949", "iso-8859-1": "cp1252", "latin1": "cp1252",
    "us-ascii": "cp1252", "ascii": "cp1252", "windows-874": "cp874", "unicode": "utf-16", "utf8": "utf-8",
}  # fmt: skip
"""Labels that the Encoding Standard reads otherwise than Python does."""


class Stage(Protocol):
    """What is done to the decoded bytes of one body."""

    def feed(self, data: bytes) -> list[bytes]:
        """Takes the next bytes; returns what may go on."""
        ...

    def finish(self) -> list[bytes]:
        """Returns what was held back."""
        ...


class EditedBody:
    """What mitmproxy calls with each chunk of a streamed body, and with `b""` at its end.

    Args:
        content_encoding: of the body as the origin sends it; it goes on without one.
        stages: what is done to it, in order.
        on_failure: called once when the body cannot be decoded any further; what follows is dropped, and the exchange has to be
            broken off, so that the client does not take what it has for the whole.

    Raises:
        EncodingError: an encoding that cannot be decoded.
    """

    def __init__(self, content_encoding: str, stages: Sequence[Stage], on_failure: Callable[[], None]) -> None:
        self._decoder = StreamDecoder(content_encoding)
        self._stages = tuple(stages)
        self._on_failure = on_failure
        self._failed = False

    def __call__(self, data: bytes) -> list[bytes]:
        """Returns what goes on to the client; never an empty piece, which would end a chunked body."""
        if self._failed:
            return []
        if not data:
            return self._finish()
        out: list[bytes] = []
        try:
            for piece in self._decoder.feed(data):
                out += self._through([piece])
        except EncodingError:
            self._failed = True
            self._on_failure()
        return out

    def whole(self, body: bytes) -> bytes:
        """Returns a body that is there at once, changed.

        Raises:
            EncodingError: it cannot be decoded.
        """
        out = self(body)
        if self._failed:
            raise EncodingError("the body is not in the encoding that it claims")
        return b"".join(out + self._finish())

    def _through(self, pieces: list[bytes], first: int = 0) -> list[bytes]:
        for stage in self._stages[first:]:
            pieces = [out for piece in pieces for out in stage.feed(piece)]
        return [piece for piece in pieces if piece]

    def _finish(self) -> list[bytes]:
        out: list[bytes] = []
        for position, stage in enumerate(self._stages):
            out += self._through(stage.finish(), position + 1)
        return out


class WholeText:
    """The stage that holds a text to change it whole.

    Args:
        content_type: the header's value.
        edits: replacements, in order.
        selectors: elements to take out first, where the text is HTML.
        on_too_long: called when the body is longer than `MOST_HELD` and passes as it is.
    """

    def __init__(
        self, content_type: str, edits: Sequence[BodyEdit], selectors: Sequence[str], on_too_long: Callable[[], None]
    ) -> None:
        self._content_type = content_type
        self._is_html = content_type.partition(";")[0].strip().lower() == "text/html"
        self._edits = tuple(edits)
        self._selectors = tuple(selectors) if self._is_html else ()
        self._on_too_long = on_too_long
        self._held = bytearray()
        self._passes = False

    def feed(self, data: bytes) -> list[bytes]:
        """Holds the bytes, or hands all on once there are too many."""
        if self._passes:
            return [data]
        self._held += data
        if len(self._held) <= MOST_HELD:
            return []
        self._passes = True
        self._on_too_long()
        return [self._release()]

    def finish(self) -> list[bytes]:
        """Returns the text, changed."""
        if self._passes:
            return []
        self._passes = True
        return [self._changed(self._release())]

    def _release(self) -> bytes:
        held = bytes(self._held)
        self._held = bytearray()
        return held

    def _changed(self, body: bytes) -> bytes:
        text, codec = decode_text(body, self._content_type)
        before = text
        if self._selectors:
            text = remove_elements(text, self._selectors)
        deadline = time.perf_counter() + _EDIT_TIME_S
        for edit in self._edits:
            text = edit.apply(text)
            if time.perf_counter() > deadline:
                break
        if text == before:
            return body
        return text.encode(codec, "xmlcharrefreplace" if self._is_html else "replace")


def decode_text(body: bytes, content_type: str) -> tuple[str, str]:
    """Reads a text so that what is not changed in it comes out byte for byte.

    Returns:
        The text and the codec that turns it back. Where the encoding is not known, or the bytes are not of it, that is
        Latin-1, in which every byte is a character.
    """
    for codec in _candidates(body, content_type):
        try:
            text = body.decode(codec)
            if text.encode(codec) == body:
                return text, codec
        except (UnicodeError, LookupError):
            continue
    return body.decode("latin-1"), "latin-1"


def _candidates(body: bytes, content_type: str) -> list[str]:
    if body.startswith(b"\xef\xbb\xbf"):
        return ["utf-8"]
    if (named := _CHARSET.search(content_type)) is not None:
        label = named.group(1).lower()
    else:
        label = meta_charset(body).decode("ascii").lower()
    chosen = _AS_BROWSERS.get(label, label)
    try:
        if chosen and codecs.lookup(chosen)._is_text_encoding:  # noqa: SLF001  no public name for it
            return [chosen, "utf-8"]
    except LookupError:
        pass
    return ["utf-8"]

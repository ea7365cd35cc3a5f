"""The check of downloads: a body is judged by its first bytes and its size while it streams, and cut where it is blocked."""

import re
from collections.abc import Callable, Mapping
from typing import Final

from gatewayfilter.content_encoding import EncodingError, StreamDecoder
from gatewayfilter.model import JudgeDownload, Verdict
from gatewayfilter.urls import Url

_LOOKED_AT: Final = 512
"""Decoded bytes of a body by which its type is known."""
_NOTHING: Final = frozenset({"", "identity"})
_PLACE: Final = re.compile(r"bytes[ \t]+(\d{1,18})-\d{1,18}/(?:\d{1,18}|\*)[ \t]*\Z", re.ASCII | re.IGNORECASE)


class CheckedDownload:
    """What mitmproxy calls with each chunk of a streamed body, and with `b""` at its end.

    Nothing is held back: a chunk that completes the signs of a blocked type does not go on, and the exchange is broken off, so
    that what the client has of the file is less than its first 512 bytes, or less than the largest size.

    Args:
        rules: of the client's policy.
        url: of the request.
        headers: of the response as the origin sent it, lower-case names.
        then: what else is done with the body, `None` to pass it on as it is.
        on_block: called once with the block.
    """

    def __init__(
        self,
        rules: JudgeDownload,
        url: Url,
        headers: Mapping[str, str],
        then: Callable[[bytes], list[bytes]] | None,
        on_block: Callable[[Verdict], None],
    ) -> None:
        self.then = then
        self._rules = rules
        self._url = url
        self._headers = headers
        self._on_block = on_block
        self._bytes = 0
        self._blocked = False
        self._begin = bytearray()
        self._sent = bytearray()
        self._looks = rules.judges_content and not _is_later_part(headers)
        self._decoder = _decoder_of(headers) if self._looks else StreamDecoder("")

    def __call__(self, data: bytes) -> list[bytes]:
        """Returns what goes on to the client."""
        if self._blocked:
            return []
        verdict = self.judge(data)
        if verdict is not None:
            self._blocked = True
            self._on_block(verdict)
            return []
        if self.then is not None:
            return self.then(data)
        return [data] if data else []

    def judge(self, data: bytes) -> Verdict | None:
        """Returns the block of the body with its next bytes, `None` where it passes so far."""
        self._bytes += len(data)
        most = self._rules.most_bytes
        if most and self._bytes > most:
            return self._rules.too_large()
        if not self._looks or not data:
            return None
        begin = self._begin
        self._sent += data[: _LOOKED_AT - len(self._sent)]
        try:
            for piece in self._decoder.feed(data):
                begin += piece[: _LOOKED_AT - len(begin)]
                if len(begin) >= _LOOKED_AT:
                    break
        except EncodingError:  # a client that does not decode it has a file of what was sent
            self._decoder = StreamDecoder("")
            begin[:] = self._sent
        if len(begin) >= _LOOKED_AT:
            self._looks = False
        return self._rules.judge_begin(self._url, self._headers, bytes(begin)) if begin else None


def _decoder_of(headers: Mapping[str, str]) -> StreamDecoder:
    """Returns the decoder of a body; one that takes nothing off where browsers take it as it is: one encoding is unknown."""
    names = [name for part in headers.get("content-encoding", "").split(",") if (name := part.strip().lower()) not in _NOTHING]
    try:
        return StreamDecoder(", ".join(names))
    except EncodingError:
        return StreamDecoder("")


def _is_later_part(headers: Mapping[str, str]) -> bool:
    """Returns whether a response is a part of a file that does not begin with its first byte.

    A place that cannot be read is none: programs take such a body for the file from its beginning.
    """
    place = _PLACE.match(headers.get("content-range", ""))
    return place is not None and place[1].strip("0") != ""

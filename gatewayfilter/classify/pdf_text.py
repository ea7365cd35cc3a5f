"""The text of PDF files, by pypdf (the extra `pdf`) in a process of its own.

A PDF file is a program in several languages: it may hold a process for hours or ask for any memory. `Confined` ends it.
"""

import io
import logging
from functools import cache, lru_cache
from hashlib import md5
from importlib.util import find_spec
from typing import Any

from gatewayfilter.classify.confined import Confined, ConfinedError

TIME_LIMIT_S = 5.0
MAX_PAGES = 30
"""Pages that are read; what a paper is about stands on its first."""
MAX_CHARS = 300_000
PDF_TYPES = frozenset({"application/pdf", "application/x-pdf"})
_MARK = b"%PDF-"
_MARK_WITHIN = 1024
"""Where readers of PDF look for its mark."""

_log = logging.getLogger(__name__)


@cache
def can_read_pdf() -> bool:
    """Tells whether the extra `pdf` is installed."""
    return find_spec("pypdf") is not None


def is_pdf(content_type: str, body: bytes) -> bool:
    """Tells whether a body is a PDF file that can be read here: by its type and its mark."""
    return content_type in PDF_TYPES and _MARK in body[:_MARK_WITHIN] and can_read_pdf()


@cache
def _confined() -> Confined:
    return Confined("gatewayfilter.classify.pdf_text:read_confined", TIME_LIMIT_S)


def pdf_text(body: bytes) -> tuple[str, str]:
    """Returns title and text of a PDF file, both `""` for one that cannot be read. Never raises; bounded in time and memory."""
    return _read(_Body(body))


class _Body:
    """A body with its digest: a cache that holds this does not compare megabytes."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self._digest = md5(body, usedforsecurity=False).digest() + len(body).to_bytes(8)

    def __hash__(self) -> int:
        return hash(self._digest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Body) and other._digest == self._digest


@lru_cache(maxsize=4)
def _read(file: _Body) -> tuple[str, str]:
    """Reads a file; judging it, keeping its text and recognising it each ask once."""
    try:
        found: dict[str, Any] = _confined().ask({}, file.body)
    except ConfinedError as error:
        _log.info("a PDF file was not read: %s", error)
        return "", ""
    return str(found["title"]), str(found["text"])


def read_confined(_: object, body: bytes) -> dict[str, str]:
    """Reads a PDF file; runs in the confined process."""
    import pypdf  # noqa: PLC0415  an optional extra, needed in the child alone

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    reader = pypdf.PdfReader(io.BytesIO(body), strict=False)
    if reader.is_encrypted and not reader.decrypt(""):
        raise ValueError("it is encrypted")
    title = str(reader.metadata.title or "") if reader.metadata else ""
    texts: list[str] = []
    length = 0
    for page in reader.pages[:MAX_PAGES]:
        text = page.extract_text()
        texts.append(text[: MAX_CHARS - length])
        length += len(texts[-1])
        if length >= MAX_CHARS:
            break
    return {"title": title[:1000], "text": "\n".join(texts)}

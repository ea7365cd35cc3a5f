"""The text of PDF files, by pypdf (the extra `pdf`) in a process of its own.

A PDF file is a program in several languages: it may hold a process for hours or ask for any memory. `Sandbox` ends it.
"""

import io
import logging
import threading
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from hashlib import md5
from importlib.util import find_spec
from typing import Any

from gatewayfilter.documents.sandbox import Sandbox, SandboxError

TIME_LIMIT_S = 5.0
MAX_PAGES = 30
"""Pages that are read; what a paper is about stands on its first."""
MAX_CHARS = 300_000
PDF_TYPES = frozenset({"application/pdf", "application/x-pdf"})
_MARK = b"%PDF-"
_MARK_WITHIN = 1024
"""Where PDF readers search for the header."""

_log = logging.getLogger(__name__)


@cache
def can_read_pdf() -> bool:
    """Returns whether the extra `pdf` is installed."""
    return find_spec("pypdf") is not None


def is_pdf(content_type: str, body: bytes) -> bool:
    """Returns whether a body is a PDF file that can be read here: by its type and its mark."""
    return content_type in PDF_TYPES and _MARK in body[:_MARK_WITHIN] and can_read_pdf()


_REMEMBERED = 32
"""Files whose text is remembered, 1 MB each at most: those that were read aside and wait to be judged."""


@cache
def _reader() -> "_Reader":
    return _Reader()


def pdf_text(body: bytes) -> tuple[str, str]:
    """Returns title and text of a PDF file, both `""` for one that cannot be read. Never raises; bounded in time and memory."""
    return _reader().read(body)


@cache
def _aside() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "pdf")


def read_pdf_aside(body: bytes) -> "Future[tuple[str, str]]":
    """Reads a PDF file in a thread of its own, one file at a time; afterwards `pdf_text` returns it at no cost.

    For callers that must not wait `TIME_LIMIT_S` for each file that was built to be slow.
    """
    return _aside().submit(pdf_text, body)


class _Reader:
    """Reads files one at a time and caches their text: classifying, archiving and fingerprinting each need it."""

    def __init__(self) -> None:
        self._confined = Sandbox("gatewayfilter.documents.pdf_text:read_confined", TIME_LIMIT_S)
        self._known: OrderedDict[bytes, tuple[str, str]] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, body: bytes) -> tuple[str, str]:
        """Returns title and text, both `""` for a file that cannot be read."""
        digest = md5(body, usedforsecurity=False).digest() + len(body).to_bytes(8)
        known = self._known.get(digest)
        if known is not None:
            return known
        with self._lock:
            known = self._known.get(digest) or self._ask(body)
            self._known[digest] = known
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return known

    def _ask(self, body: bytes) -> tuple[str, str]:
        try:
            found: dict[str, Any] = self._confined.ask({}, body)
        except SandboxError as error:
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

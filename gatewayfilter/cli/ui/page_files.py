"""Pages from files and standard input, for commands that judge without fetching."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from gatewayfilter.errors import ClassifyError
from gatewayfilter.interfaces import Page

_TAG = re.compile(rb"<(?:!doctype|html|head|body|title|meta|div|p|a|h[1-6]|span|table|script|!--)\b", re.IGNORECASE)
_LOOKED_AT = 4096
MAX_FILE = 50_000_000
"""Bytes; the classifier reads 2 MB of them."""


def read_bytes(name: str) -> bytes:
    """Returns a file's content, standard input's for `-`; at most `MAX_FILE` bytes.

    Raises:
        ClassifyError: it cannot be read.
    """
    try:
        if name == "-":
            return sys.stdin.buffer.read(MAX_FILE)
        with Path(name).open("rb") as file:
            return file.read(MAX_FILE)
    except OSError as error:
        raise ClassifyError(f"cannot read {name}: {error.strerror}") from error


def page_of(content: bytes) -> Page:
    """Returns content as a page without an address: PDF or HTML when it begins like it, else text."""
    if content.startswith(b"%PDF-"):
        return Page("", "", 200, {"content-type": "application/pdf"}, content)
    kind = "text/html" if _TAG.search(content[:_LOOKED_AT]) else "text/plain"
    return Page("", "", 200, {"content-type": kind}, content)

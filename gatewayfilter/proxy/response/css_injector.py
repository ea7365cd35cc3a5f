"""CSS injection into an HTML document while it streams, without parsing it and without delaying it.

The sheet goes right after `<head>`, or where a browser would open the head by itself: before the first tag or text that is
neither doctype nor `<html>`. There it stands before any `<meta http-equiv="content-security-policy">`, which counts only for
what follows it. All that is put in is ASCII, which every encoding of the Encoding Standard but UTF-16 leaves alone.
"""

import re
from base64 import b64encode
from functools import lru_cache
from hashlib import sha256
from typing import Final

MOST_HELD: Final = 16_384
"""Bytes before the head that are held back at most; a document with more comments than that in front stays as it is."""
_PRESCAN: Final = 1024
"""Bytes in which browsers search for `<meta charset>` (HTML Standard, §4.2.5.4)."""
_SKIPPED = re.compile(
    rb"[\t\n\x0c\r ]+|<!--.*?-->|<!--(?=>|->)-?>|<!(?!--)[^>]*>|<\?[^>]*>|<html(?=[\s/>])(?:[^>\"']|\"[^\"]*\"|'[^']*')*>",
    re.IGNORECASE | re.DOTALL,
)
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_HEAD = re.compile(rb"<head(?=[\s/>])(?:[^>\"']|\"[^\"]*\"|'[^']*')*>", re.IGNORECASE)
_UNFINISHED = re.compile(rb"<(?:!|\?|$|html?(?:[\s/>]|$)|h(?:tm?|ea?)?$|head(?:[\s/]|$))", re.IGNORECASE)
_META = re.compile(rb"<!--.*?(?:-->|$)|<meta(?=[\s/])[^>]*>", re.IGNORECASE | re.DOTALL)
_CHARSET = re.compile(rb"charset\s*+=\s*+[\"']?\s*+([a-z0-9_:.\-]{1,40})", re.IGNORECASE)
_WIDE_MARKS: Final = (b"\xfe\xff", b"\xff\xfe")


@lru_cache(maxsize=8)
def style_text(css: str) -> str:
    """Returns CSS that can stand in a `<style>` element of any document: ASCII, and without anything that ends the element.

    Remembered for the last few sheets: most pages get the same one, some 200 KB long.
    """
    text = css.replace("</", "<\\/").replace("<!--", "<\\!--").replace("\x00", "\ufffd")
    return text if text.isascii() else _NOT_ASCII.sub(lambda found: f"\\{ord(found[0]):x} ", text)


@lru_cache(maxsize=8)
def style_hash(css: str) -> str:
    """Returns the CSP source that allows exactly this sheet; `css` as `style_text` gave it."""
    return f"'sha256-{b64encode(sha256(css.encode('ascii')).digest()).decode('ascii')}'"


def meta_charset(head: bytes) -> bytes:
    """Returns the encoding that a browser's prescan finds in the first kilobyte of a document, `b""` for none."""
    for found in _META.finditer(head[:_PRESCAN]):
        text = found.group()
        if not text.startswith(b"<!") and (named := _CHARSET.search(text)) is not None:
            return named.group(1)
    return b""


class StyleInjector:
    """One document's stage: bytes in, bytes out.

    Args:
        css: as `style_text` gave it.
        charset_known: the response's headers name the encoding. Otherwise the document itself may, in its first kilobyte, which
            the sheet must not push away: the name is repeated in front of it.

    Attributes:
        done: the sheet is in, or never will be.
        injected: it is in.
    """

    def __init__(self, css: str, *, charset_known: bool) -> None:
        self._style = b"<style>" + css.encode("ascii") + b"</style>"
        self._charset_known = charset_known
        self._held = b""
        self.done = False
        self.injected = False

    def feed(self, data: bytes) -> list[bytes]:
        """Takes the next bytes of the document and returns what may go on."""
        if self.done:
            return [data] if data else []
        self._held += data
        if not self._charset_known and len(self._held) < _PRESCAN:
            return []
        return self._try(last=False)

    def finish(self) -> list[bytes]:
        """Returns what is still held back, the document being at its end."""
        return [] if self.done else self._try(last=True)

    def _try(self, *, last: bool) -> list[bytes]:
        held = self._held
        if held.startswith(_WIDE_MARKS) or (last and not held.strip()):
            return self._end(held)
        position = self._place(last=last)
        if position is None:
            return self._end(held) if last or len(held) > MOST_HELD else []
        self.injected = True
        named = b"" if self._charset_known or held.startswith(b"\xef\xbb\xbf") else meta_charset(held)
        meta = b'<meta charset="' + named + b'">' if named else b""
        return self._end(held[:position] + meta + self._style + held[position:])

    def _place(self, *, last: bool) -> int | None:
        """Returns the position of the sheet, `None` when more bytes are needed."""
        held = self._held
        at = 3 if held.startswith(b"\xef\xbb\xbf") else 0
        if not last and len(held) < 3:
            return None
        while (skipped := _SKIPPED.match(held, at)) is not None:
            at = skipped.end()
        if (head := _HEAD.match(held, at)) is not None:
            return head.end()
        if at == len(held) or _UNFINISHED.match(held, at):
            return None
        return at

    def _end(self, data: bytes) -> list[bytes]:
        self.done = True
        self._held = b""
        return [data] if data else []

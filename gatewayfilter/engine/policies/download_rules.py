"""Download rules: which file types and sizes of responses a policy blocks, by headers, URL and the first bytes of the body."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from gatewayfilter.content_encoding import media_type
from gatewayfilter.engine.policies.magic_bytes import found_type
from gatewayfilter.model import FILE_TYPES, MEDIA_TYPES, Action, Reason, Verdict
from gatewayfilter.urls import Url

_LONGEST_HEADER: Final = 4_096
_NAME: Final = re.compile(
    r"filename(?P<part>\*\d+)?(?P<coded>\*)?[ \t]*=[ \t]*(?:\"(?P<quoted>(?:[^\"\\]|\\.)*)\"|(?P<plain>[^;]*))", re.IGNORECASE
)
_TOTAL: Final = re.compile(r"bytes[ \t]+(\d{1,18})-\d{1,18}/(\d{1,18}|\*)", re.ASCII)
_MEGABYTE: Final = 1_000_000
_PAGES: Final = frozenset({"text/html", "application/xhtml+xml"})
_PARTS: Final = "multipart/byteranges"
_STARTS_LATE: Final = 512
"""A part of a file that begins within its first bytes, but not with them, hides what it is."""


@dataclass(frozen=True, slots=True)
class DownloadRules:
    """What a policy blocks of responses.

    Attributes:
        policy: its name.
        types: file types that are blocked.
        media: main types of which every media type is blocked: `video`, `audio`.
        most_bytes: of a body as it is sent; 0 for no limit.
        named: the types and groups as the policy names them.
    """

    policy: str = ""
    types: frozenset[str] = frozenset()
    media: frozenset[str] = frozenset()
    most_bytes: int = 0
    named: frozenset[str] = frozenset()

    @property
    def judges_content(self) -> bool:
        """Whether the first bytes of a body are to be judged."""
        return bool(self.types)

    def judge_head(self, url: Url, headers: Mapping[str, str]) -> Verdict | None:
        """Returns the block of a response by its header section, `None` where it passes so far."""
        length = headers.get("content-length", "")
        part = _TOTAL.match(headers.get("content-range", ""))
        if self.most_bytes:
            sizes = [text for text in (length, part[2] if part else "") if text.isascii() and text.isdecimal()]
            if any(len(text) > 18 or int(text) > self.most_bytes for text in sizes):
                return self.too_large()
        declared = media_type(headers.get("content-type", "")[:_LONGEST_HEADER])
        if declared == _PARTS:  # which hold the beginning of a file, and how large it is, within the body
            return self._of_type("several parts of a file") if self.types else self.too_large()
        if not self.types:
            return None
        if part is not None and 0 < int(part[1]) < _STARTS_LATE:
            return self._of_type("a part that begins behind the first bytes of a file")
        for name in self.claimed(url, headers):
            if name in self.types:
                return self._of_type(name)
        return self._of_type(declared) if declared.partition("/")[0] in self.media else None

    def judge_begin(self, url: Url, headers: Mapping[str, str], begin: bytes) -> Verdict | None:
        """Returns the block of a response by the first bytes of its decoded body, `None` where they show no blocked type."""
        claimed = self.claimed(url, headers)
        name = found_type(begin, claimed, self.types)
        return self._of_type(f"{name} by its content") if name in self.types else None

    def claimed(self, url: Url, headers: Mapping[str, str]) -> frozenset[str]:
        """Returns the file types that a response claims: by its media type, its file name, the ending of its URL."""
        declared = media_type(headers.get("content-type", "")[:_LONGEST_HEADER])
        names = [_extension(name) for name in file_names(headers.get("content-disposition", ""))]
        if declared not in _PAGES and not any(names):
            names.append(_extension(unquote(url.path[-300:])))
        return frozenset({MEDIA_TYPES.get(declared, ""), *names}) & FILE_TYPES

    def too_large(self) -> Verdict:
        """Returns the block of a response that is too large."""
        detail = f"larger than {self.most_bytes // _MEGABYTE} MB"
        return Verdict(Action.BLOCK, Reason.FILE_SIZE, rule=self.policy, detail=detail)

    def _of_type(self, name: str) -> Verdict:
        return Verdict(Action.BLOCK, Reason.FILE_TYPE, rule=self.policy, detail=name)

    @property
    def summary(self) -> str:
        """What is blocked, for `check`."""
        parts = [f"file types {', '.join(sorted(self.named))}"] if self.named else []
        parts += [f"files above {self.most_bytes // _MEGABYTE} MB"] if self.most_bytes else []
        return "; ".join(parts)


def file_names(disposition: str) -> list[str]:
    """Returns each file name that a `Content-Disposition` gives: browsers differ in which of several they take.

    Source: RFC 6266 §4.3, RFC 5987; parts as in RFC 2231 §3 are joined.
    """
    names: list[str] = []
    parts: list[str] = []
    for match in _NAME.finditer(disposition[:_LONGEST_HEADER]):
        quoted = match["quoted"]
        text = re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else match["plain"].strip()
        if match["coded"]:
            text = text.rpartition("'")[2]
        text = unquote(text)
        if match["part"]:
            parts.append(text)
        else:
            names.append(text)
    return [*names, "".join(parts)] if parts else names


def _extension(name: str) -> str:
    """Returns the extension of a file name as Windows reads it: without dots, blanks and invisible characters at its end."""
    end = name.replace("\\", "/").rpartition("/")[2].partition(":")[0]
    end = "".join(mark for mark in end if mark.isprintable()).rstrip(". \t")
    return end.rpartition(".")[2].lower() if "." in end else ""

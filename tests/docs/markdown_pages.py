"""The project's Markdown pages, taken apart: prose, code spans, fenced blocks, links."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]

_FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\[[^\]\[]*\]\(([^()\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)


@dataclass(frozen=True)
class MarkdownPage:
    """One page.

    Attributes:
        path: of the file.
        text: all of it.
    """

    path: Path
    text: str

    @property
    def name(self) -> str:
        """Path within the project."""
        return self.path.relative_to(ROOT).as_posix()

    @cached_property
    def fences(self) -> list[tuple[str, str]]:
        """Language and content of each fenced block."""
        return [(match[1], match[2]) for match in _FENCE.finditer(self.text)]

    @cached_property
    def prose(self) -> str:
        """The text without fenced blocks."""
        return _FENCE.sub("", self.text)

    @cached_property
    def spans(self) -> list[str]:
        """The code spans of the prose."""
        return [span.replace("\\|", "|") for span in _SPAN.findall(self.prose)]

    @cached_property
    def links(self) -> list[str]:
        """Where relative links of the prose lead, anchors included."""
        return [link for link in _LINK.findall(_SPAN.sub("x", self.prose)) if not link.startswith(("http://", "https://"))]

    @cached_property
    def anchors(self) -> set[str]:
        """The anchors of its headings, as GitHub makes them."""
        return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in _HEADING.findall(self.prose)}

    @property
    def code(self) -> Iterator[str]:
        """Every line of code: spans, and lines of fenced blocks joined where a backslash breaks them."""
        yield from self.spans
        for _, content in self.fences:
            yield from content.replace("\\\n", " ").splitlines()


def read_page(path: Path) -> MarkdownPage:
    """Reads a page."""
    return MarkdownPage(path, path.read_text(encoding="utf-8"))


PAGES = {page.name: page for path in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]) for page in [read_page(path)]}
"""All pages, by name."""

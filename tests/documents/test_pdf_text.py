"""What is taken of a PDF file in the confined process, with a library that the test stands in for."""

import logging
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.documents import pdf_text
from gatewayfilter.documents.pdf_text import is_pdf, read_confined, read_pdf_aside


class Library:
    """A file as pypdf reads it."""

    def __init__(self, pages: list[str], title: str | None = "t", *, encrypted: bool = False, opens: int = 1) -> None:
        self.read = list[str]()
        self.pages = [SimpleNamespace(extract_text=lambda text=text: self.taken(text)) for text in pages]
        self.metadata = None if title is None else SimpleNamespace(title=title)
        self.is_encrypted = encrypted
        self.opens = opens
        self.asked = list[Any]()

    def taken(self, text: str) -> str:
        self.read.append(text)
        return text

    def decrypt(self, password: str) -> int:
        assert password == ""
        return self.opens

    def made(self, stream: Any, *, strict: bool) -> "Library":
        self.asked.append((stream.read(), strict))
        return self


def confined(monkeypatch: pytest.MonkeyPatch, library: Library) -> dict[str, str]:
    monkeypatch.setitem(sys.modules, "pypdf", SimpleNamespace(PdfReader=library.made))
    return read_confined(None, b"body")


def test_title_and_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library(["a", "", "b"], "x" * 1_200)
    assert confined(monkeypatch, library) == {"title": "x" * 1_000, "text": "a\n\nb"}
    assert library.asked == [(b"body", False)], "damaged files are read as far as they can be"
    assert logging.getLogger("pypdf").level == logging.CRITICAL
    for title in (None, ""):
        assert confined(monkeypatch, Library([], title)) == {"title": "", "text": ""}


def test_pages_and_characters_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf_text, "MAX_PAGES", 3)
    assert confined(monkeypatch, Library(list("abcde")))["text"] == "a\nb\nc"
    monkeypatch.setattr(pdf_text, "MAX_CHARS", 5)
    for pages, text, read in (
        (["abc", "defg", "h"], "abc\nde", 2),
        (["abc", "de", "h"], "abc\nde", 2),
        (["abc", "d", "ef"], "abc\nd\ne", 3),
    ):
        library = Library(pages)
        assert (confined(monkeypatch, library)["text"], len(library.read)) == (text, read)


def test_an_encrypted_file_is_read_if_anyone_may(monkeypatch: pytest.MonkeyPatch) -> None:
    assert confined(monkeypatch, Library(["a"], encrypted=True))["text"] == "a"
    assert confined(monkeypatch, Library(["a"], opens=0))["text"] == "a"
    with pytest.raises(ValueError, match="encrypted"):
        confined(monkeypatch, Library(["a"], encrypted=True, opens=0))


def test_what_is_taken_for_a_pdf_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf_text, "can_read_pdf", lambda: True)
    assert is_pdf("application/pdf", b"%PDF-1.7") is True
    assert is_pdf("application/x-pdf", b" " * 1_019 + b"%PDF-1.7") is True
    assert is_pdf("application/pdf", b" " * 1_020 + b"%PDF-1.7") is False
    assert is_pdf("text/html", b"%PDF-1.7") is False
    assert is_pdf("application/pdf", b"PDF-1.7") is False
    monkeypatch.setattr(pdf_text, "can_read_pdf", lambda: False)
    assert is_pdf("application/pdf", b"%PDF-1.7") is False


def test_whether_the_library_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    for found, can in ((object(), True), (None, False)):
        monkeypatch.setattr(pdf_text, "find_spec", lambda name, found=found: found if name == "pypdf" else None)
        assert pdf_text.can_read_pdf.__wrapped__() is can


def test_files_are_read_aside_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf_text, "pdf_text", lambda body: ("title", body.decode()))
    assert read_pdf_aside(b"x").result() == ("title", "x")
    assert pdf_text._aside()._max_workers == 1

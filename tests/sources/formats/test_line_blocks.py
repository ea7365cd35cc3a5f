"""Blocks of whole lines: what is cut, what is skipped, and the mark at the beginning of a file."""

from io import BytesIO

import numpy as np
import pytest

from gatewayfilter.sources.formats import line_blocks
from gatewayfilter.sources.formats.line_blocks import text_blocks, text_lines
from gatewayfilter.sources.formats.parse import CountingSink

MARK = "\ufeff".encode()


@pytest.mark.parametrize("size", [1, 3, 5, 8, 100])
@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"a\nb", ["a", "b"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"\n\na\n", ["", "", "a"]),
        (MARK + b"a\n" + MARK + b"b\n", ["a", "\ufeffb"]),
        (b"12345678\nb\n", ["12345678", "b"]),
        (b"123456789\nb\n", ["123456789", "b"]),
        (b"1234567890\nb\n", ["123456789", "b"]),
        (b"12345678901234567890\nb\n12345678901234\nc", ["123456789", "b", "123456789", "c"]),
        (b"12345678901234567890", ["123456789"]),
        (b"a\xffb\n", ["a\ufffdb"]),
    ],
)
def test_lines_wherever_blocks_end(size: int, content: bytes, lines: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_blocks, "BLOCK_SIZE", size)
    monkeypatch.setattr(line_blocks, "MAX_LINE_LENGTH", 8)
    assert list(text_lines(BytesIO(content))) == lines
    assert all(block.endswith("\n") for block in list(text_blocks(BytesIO(content)))[:-1])


def test_what_is_counted_and_not_kept() -> None:
    assert CountingSink().add_keys(0, iter(["a", "b", "a"])) == 3
    assert CountingSink().add_digests(0, np.zeros((3, 16), np.uint8)) == 3

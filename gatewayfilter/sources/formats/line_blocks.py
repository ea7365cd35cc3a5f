"""The reader of a list as blocks of whole lines, in bounded memory."""

from collections.abc import Iterator
from typing import BinaryIO

BLOCK_SIZE = 262_144
MAX_LINE_LENGTH = 65_536
"""A longer line is cut there, in bytes; no format has a use for one, and each refuses it."""


def text_blocks(file: BinaryIO) -> Iterator[str]:
    r"""Yields the text in blocks that end at a line's end: UTF-8, ``\n`` between lines, without byte order mark.

    A line over `MAX_LINE_LENGTH` bytes is yielded cut to one byte more than that, the rest of it is skipped. Bytes that are not
    UTF-8 become U+FFFD, which is in no valid entry.
    """
    first = True
    for block in _whole_lines(file):
        text = block.decode("utf-8", "replace").replace("\r\n", "\n")
        yield text.removeprefix("\ufeff") if first else text
        first = False


def text_lines(file: BinaryIO) -> Iterator[str]:
    """Yields the lines of `text_blocks`, without their ends."""
    for block in text_blocks(file):
        yield from block.removesuffix("\n").split("\n")


def _whole_lines(file: BinaryIO) -> Iterator[bytes]:
    rest = b""
    skipping = False
    while block := file.read(BLOCK_SIZE):
        if skipping:
            _, found, block = block.partition(b"\n")
            if not found:
                continue
            skipping = False
        head, end, tail = (rest + block).rpartition(b"\n")
        if end:
            yield _cut_long_lines(head) + b"\n"
        rest = tail
        if len(rest) > MAX_LINE_LENGTH:
            yield rest[: MAX_LINE_LENGTH + 1] + b"\n"
            rest, skipping = b"", True
    if rest:
        yield rest


def _cut_long_lines(block: bytes) -> bytes:
    lines = block.split(b"\n")
    if max(map(len, lines)) <= MAX_LINE_LENGTH:
        return block
    return b"\n".join(line[: MAX_LINE_LENGTH + 1] for line in lines)

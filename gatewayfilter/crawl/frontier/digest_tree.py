"""The MD5 de-duplication tree: an exact set of URL digests that can forget.

Source: [cloud-crawler §3.1] a URL's MD5 is walked down a tree, so that lookup does not depend on the number of URLs, a URL
can be deleted, and nothing but an MD5 collision is a false positive.
Deviation: the paper gives every digit a level. Here a level is a byte, and below the last branching the rests of the digests
stand side by side in one array until there are too many of them: a level less of pointers for each byte saved, at 16 bytes an
entry instead of hundreds. A leaf holds a bounded number of rests, so lookup stays as independent of the size as in the paper.
"""

import logging
import os
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

_log = logging.getLogger(__name__)

MAGIC = b"GFTREE1\n"
DIGEST = 16
MAX_ENTRIES = 10_000_000
"""About 170 MB; the tree is emptied then, and pages may be visited once more."""
_LEAF_ENTRIES = 256
"""Digests of a leaf before it branches: their rests (14 bytes each in a tree of a million) are searched in 0.1 µs."""

type _Node = list["_Node | bytearray"]


class DigestTree:
    """A set of 16-byte digests. Add, look up and remove cost some 0.5 µs each; about 17 bytes an entry at 10 million.

    The first bytes of a digest choose its branch, so digests must be spread evenly, as MD5s are. Not for several
    threads at a time.

    Args:
        path: where it is kept; a damaged file is passed over and the tree starts empty. `None` keeps it in memory.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._root: _Node = _branch()
        self._count = 0
        self._unsaved = 0
        if path is not None:
            self._load(path)

    def __len__(self) -> int:
        return self._count

    @property
    def unsaved(self) -> int:
        """How many additions and removals the file does not hold yet."""
        return self._unsaved

    def __contains__(self, digest: bytes) -> bool:
        node = self._root[digest[0]]
        depth = 1
        while isinstance(node, list):
            node = node[digest[depth]]
            depth += 1
        rest = digest[depth:]
        at = node.find(rest)
        while at > 0 and at % len(rest):  # the end of one rest and the beginning of the next
            at = node.find(rest, at + 1)
        return at >= 0

    def add(self, digest: bytes) -> bool:
        """Adds a digest. Returns whether it was new."""
        if self._count >= MAX_ENTRIES:
            self._root, self._count = _branch(), 0
        branch = self._root
        depth = 1
        node = branch[digest[0]]
        while isinstance(node, list):
            branch = node
            node = branch[digest[depth]]
            depth += 1
        rest = digest[depth:]
        if _position(node, rest) >= 0:
            return False
        node += rest
        self._count += 1
        self._unsaved += 1
        if len(node) > _LEAF_ENTRIES * len(rest) and len(rest) > 1:
            branch[digest[depth - 1]] = _split(node, len(rest))
        return True

    def remove(self, digest: bytes) -> bool:
        """Removes a digest. Returns False when it was not there."""
        node = self._root[digest[0]]
        depth = 1
        while isinstance(node, list):
            node = node[digest[depth]]
            depth += 1
        rest = digest[depth:]
        at = _position(node, rest)
        if at < 0:
            return False
        node[at : at + len(rest)] = node[-len(rest) :]  # the last one takes its place
        del node[-len(rest) :]
        self._count -= 1
        self._unsaved += 1
        return True

    def __iter__(self) -> Iterator[bytes]:
        """Yields all digests, branch by branch; the tree must not change meanwhile."""
        yield from _digests(self._root, b"")

    def update(self, digests: Iterable[bytes]) -> int:
        """Adds many digests. Returns how many were new."""
        return sum(map(self.add, digests))

    def save(self) -> None:
        """Writes the tree to its file, whole or not at all. A full disk is logged, not raised: the next time may go better."""
        if self._path is None or not self._unsaved:
            return
        try:
            self._write(self._path)
        except OSError as error:
            _log.warning("cannot write %s: %s", self._path.name, error.strerror)
        else:
            self._unsaved = 0

    def _write(self, path: Path) -> None:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}-", delete=False) as file:
            try:
                file.write(MAGIC + bytes(4) + self._count.to_bytes(8, "little"))
                check = 0
                for first, node in enumerate(self._root):
                    part = b"".join(_digests([node], bytes([first]), whole=True))
                    check = zlib.crc32(part, check)
                    file.write(part)
                file.seek(len(MAGIC))
                file.write(check.to_bytes(4, "little"))
                file.flush()
                os.fsync(file.fileno())
                Path(file.name).replace(path)
            except OSError:
                Path(file.name).unlink(missing_ok=True)
                raise

    def _load(self, path: Path) -> None:
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return
        except OSError as error:
            _log.warning("cannot read %s: %s; starting with an empty one", path.name, error.strerror)
            return
        start = len(MAGIC) + 12
        count = int.from_bytes(content[len(MAGIC) + 4 : start], "little")
        body = memoryview(content)[start:]
        sound = content[: len(MAGIC)] == MAGIC and len(body) == count * DIGEST
        if not sound or zlib.crc32(body).to_bytes(4, "little") != content[len(MAGIC) : len(MAGIC) + 4]:
            _log.warning("%s is damaged; starting with an empty one", path.name)
            return
        for at in range(0, len(body), DIGEST):
            self.add(bytes(body[at : at + DIGEST]))
        self._unsaved = 0


def _branch() -> _Node:
    return [bytearray() for _ in range(256)]


def _position(leaf: bytearray, rest: bytes) -> int:
    at = leaf.find(rest)
    while at > 0 and at % len(rest):
        at = leaf.find(rest, at + 1)
    return at


def _split(leaf: bytearray, width: int) -> _Node:
    """Returns the branch that takes a full leaf's place."""
    leaves = [bytearray() for _ in range(256)]
    for at in range(0, len(leaf), width):
        leaves[leaf[at]] += leaf[at + 1 : at + width]
    return [*leaves]


def _digests(branch: _Node, prefix: bytes, *, whole: bool = False) -> Iterator[bytes]:
    """Yields the digests below a branch; with `whole` the prefix is that of its only child."""
    for byte, node in enumerate(branch):
        path = prefix if whole else prefix + bytes([byte])
        if isinstance(node, list):
            yield from _digests(node, path)
        else:
            width = DIGEST - len(path)
            for at in range(0, len(node), width):
                yield path + bytes(node[at : at + width])

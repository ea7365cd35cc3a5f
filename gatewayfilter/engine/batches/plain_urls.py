"""Plain URLs: recognition of URLs that are canonical as they are written, in columns, without parsing each.

A plain URL is one that `parse_url` returns unchanged. This is sufficient, not necessary: a URL with a port, an unusual
character or a dot segment is not plain here, and has to be parsed. Of recorded requests more than 95 % are plain.

Source: https://url.spec.whatwg.org/#url-parsing: the characters that path and query keep as they are.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gatewayfilter.compiled import load
from gatewayfilter.errors import UrlError
from gatewayfilter.urls import MAX_URL_LENGTH, Url, digest_of, parse_url

SPELLED: Final = 1
"""Flag: the URL may have other spellings (`path_spellings.has_spellings`)."""
SLASH: Final = 2
"""Flag: the path ends with a slash, and is longer than that."""
OTHER_KEY: Final = 4
"""Flag: the list key may differ from the text behind the scheme, so there is no digest."""

_compiled = load("gatewayfilter.engine.batches._plain_urls")

_PLAIN: Final = re.compile(
    rb"(https?://[a-z0-9._-]{1,255})(?![^?]*/\.(?:[./?]|\Z))"  # no dot segment, nor what begins like one
    rb"(/[A-Za-z0-9!$%&'()*+,./:;=@~_|\[\]-]*)(\?[A-Za-z0-9!$%&()*+,./:;=@~_|\[\]?{}^\\`-]*)?"
)
_DOT_ESCAPE: Final = re.compile(rb"%2[Ee]")
_ODD_ESCAPE: Final = re.compile(rb"%(?:2[DE]|3[0-9]|[46][1-9A-F]|5[0-9AF]|7[0-9AE]|[0-9A-F][a-f]|[a-f][0-9A-Fa-f])")
_ASCII_ESCAPE: Final = re.compile(rb"%[0-7][0-9A-Fa-f]")


@dataclass(frozen=True, slots=True)
class PlainUrls:
    """A column of URLs, read.

    Attributes:
        heads: int32[n]: scheme and host, a number in `names`; -1 for a URL that is not plain.
        names: scheme and host, `b"https://example.org"`, each once. Whether that is canonical is left to `is_canonical`.
        flags: uint8[n]: `SPELLED`, `SLASH`, `OTHER_KEY`.
        digests: uint8[n, 16]: of the list keys, zeros where a URL is not plain or has `OTHER_KEY`; `None` where none were wanted.
        lowered: all URLs in lower case, with a line end behind each.
        starts: int64[n + 1]: where each begins in `lowered`.
    """

    heads: NDArray[np.int32]
    names: list[bytes]
    flags: NDArray[np.uint8]
    digests: NDArray[np.uint8] | None
    lowered: bytes
    starts: NDArray[np.int64]


def read_plain(data: bytes | memoryview, offsets: NDArray[np.int32], *, hashed: bool) -> PlainUrls:
    """Returns a column of URLs, read.

    Args:
        data: the URLs in UTF-8, one behind the other.
        offsets: int32[n + 1]: where each begins in `data`, and where the last one ends.
        hashed: digests are wanted.
    """
    count = len(offsets) - 1
    read = _compiled.read if _compiled is not None else _read
    heads, flags, digests, lowered, names = read(data, np.ascontiguousarray(offsets, np.int32), hashed=hashed)
    return PlainUrls(
        np.frombuffer(heads, np.int32),
        names,
        np.frombuffer(flags, np.uint8),
        np.frombuffer(digests, np.uint8).reshape(count, 16) if hashed else None,
        lowered,
        offsets.astype(np.int64) - offsets[0] + np.arange(count + 1),
    )


def _read(
    data: bytes | memoryview, offsets: NDArray[np.int32], *, hashed: bool
) -> tuple[bytes, bytes, bytes, bytes, list[bytes]]:
    """Returns heads, flags, digests, URLs in lower case, and names; the Python that the compiled module does the same as."""
    whole = bytes(data)
    places = offsets.tolist()
    urls = [whole[begin:end] for begin, end in pairwise(places)]
    names: dict[bytes, int] = {}
    heads: list[int] = []
    flags = bytearray()
    digests: list[bytes] = []
    for url in urls:
        head, flag, digest = -1, 0, b""
        found = _PLAIN.fullmatch(url) if len(url) <= MAX_URL_LENGTH else None
        if found is not None and not _DOT_ESCAPE.search(path := found[2]):
            head = names.setdefault(found[1], len(names))
            flag = _flags(url, path, found[3])
            if hashed and not flag & OTHER_KEY:
                digest = digest_of(url[url.index(b"/") + 2 :].decode())
        heads.append(head)
        flags.append(flag)
        digests.append(digest or bytes(16))
    lowered = b"".join(url.lower() + b"\n" for url in urls)
    return (np.array(heads, np.int32).tobytes(), bytes(flags), b"".join(digests) if hashed else b"", lowered, list(names))


def _flags(url: bytes, path: bytes, query: bytes | None) -> int:
    odd = b"%" in url and _ODD_ESCAPE.search(url) is not None
    spelled = odd or b";" in path or b"//" in path or b"./" in path or path.endswith(b".")
    if not spelled and b"%" in path:
        spelled = _ASCII_ESCAPE.search(path) is not None
    slash = len(path) > 1 and path.endswith(b"/")
    return SPELLED * spelled | SLASH * slash | OTHER_KEY * (odd or query == b"?")


@lru_cache(maxsize=16_384)
def is_canonical(head: bytes) -> bool:
    """Returns whether scheme and host are in canonical form."""
    text = head.decode()
    try:
        return parse_url(f"{text}/").text == f"{text}/"
    except UrlError:
        return False


def plain_url(text: str, head: str) -> Url:
    """Returns a plain URL, parsed; for rows whose head is canonical. A third of the time of `parse_url`."""
    scheme, _, host = head.partition("://")
    path, mark, query = text[len(head) :].partition("?")
    return Url(scheme, host, "", path, mark + query)

"""The headers that say how a body is encoded and what it is, as browsers read them."""

import re
from functools import lru_cache
from typing import Final

KNOWN: Final = frozenset({"", "identity", "gzip", "x-gzip", "deflate", "br", "zstd"})
"""Names in `Content-Encoding` that `StreamDecoder` takes."""
ACCEPTED: Final = "gzip, deflate, br, zstd"
"""What a client says in `Accept-Encoding` that reads with this decoder."""
_LONGEST_REMEMBERED: Final = 100
_MEDIA_TYPE: Final = re.compile(r"[ \t]*([!#$%&'*+\-.^_`|~0-9A-Za-z]+/[!#$%&'*+\-.^_`|~0-9A-Za-z]+)")


def media_type(content_type: str) -> str:
    """Returns the media type that browsers read in a `Content-Type`, lower case, without parameters; `""` for none.

    Of several it is HTML where any of them is: browsers take the last one, or the first (Fetch standard §2.2.2), and none of
    them minds what follows a type without a semicolon. Sites say the same few: short ones are remembered.
    """
    return (_media_type if len(content_type) <= _LONGEST_REMEMBERED else _media_type.__wrapped__)(content_type)


@lru_cache(maxsize=512)
def _media_type(content_type: str) -> str:
    found = [match[1].lower() for part in content_type.split(",") if (match := _MEDIA_TYPE.match(part)) is not None]
    return "text/html" if "text/html" in found else found[-1] if found else ""


def as_shown(content_encoding: str) -> str:
    """Returns by which encodings browsers read a body: they pass over `identity`, and some over unknown names beside others.

    Args:
        content_encoding: the header's value.
    """
    name = content_encoding.strip().lower()
    if "," not in name:
        return name if name in KNOWN else ""
    return ", ".join(one for part in name.split(",") if (one := part.strip()) in KNOWN and one not in {"", "identity"})

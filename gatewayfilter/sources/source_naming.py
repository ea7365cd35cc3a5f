"""Names of sources: made from addresses, checked, guessed when misspelt."""

import difflib
import re
from collections.abc import Iterable

from gatewayfilter.sources.download.archives import PARTS

NAME = re.compile(r"[a-z0-9-]{1,40}", re.ASCII)
"""What a source may be called."""
_WITHOUT_QUERY = re.compile(r"(https?://[^?#]*/[^/?#]+\.[^/?#.]+)[?#].*", re.ASCII | re.IGNORECASE | re.DOTALL)
"""An address of a file, and what stands behind it."""


def name_for(address: str) -> str:
    """Returns a name for a source by the last part of its address: `gambling` for `…/gambling/domains`.

    A query counts where the address names no file before it: `list-ads` for `…/get?list=ads`, `ads` for `…/ads.txt?raw=1`.
    """
    parts = [part for part in re.split(r"[/\\?#]", _WITHOUT_QUERY.sub(r"\1", address)) if part]
    if len(parts) > 1 and parts[-1] in PARTS:
        parts.pop()
    stem = parts[-1].lower().partition(".")[0]
    return re.sub(r"[^a-z0-9]+", "-", stem).strip("-")[:40] or "list"


def suggestion(name: str, known: Iterable[str]) -> str:
    """Returns the end of a sentence that names the nearest known name, `""` when there is none near."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""

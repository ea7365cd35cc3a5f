"""Pages that extraction rules are edited with: kept for an hour, so that they are not fetched at each change of a rule."""

import secrets
import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

MOST_PAGES: Final = 8
KEPT_S: Final = 3_600.0
_LEVEL: Final = 1
"""Of zlib: the quickest. A page is compressed while somebody waits for the editor."""


@dataclass(frozen=True, slots=True)
class ShelvedPage:
    """A page.

    Attributes:
        key: names it.
        url: its address, `""` for one that was pasted.
        html: its markup.
    """

    key: str
    url: str
    html: str


class PageShelf:
    """Keeps the newest pages in memory, compressed. Thread-safe.

    Args:
        clock: Unix seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._one = threading.Lock()
        self._pages: OrderedDict[str, tuple[float, str, bytes]] = OrderedDict()

    def put(self, url: str, html: str) -> ShelvedPage:
        """Keeps a page; the oldest one goes when there are too many."""
        key = secrets.token_urlsafe(12)
        packed = zlib.compress(html.encode("utf-8", "replace"), _LEVEL)
        with self._one:
            self._pages[key] = self._clock(), url, packed
            while len(self._pages) > MOST_PAGES:
                self._pages.popitem(last=False)
        return ShelvedPage(key, url, html)

    def find(self, key: str) -> ShelvedPage | None:
        """Returns a page, `None` when it is not kept any more."""
        with self._one:
            found = self._pages.get(key)
            if found is None:
                return None
            put_at, url, packed = found
            if self._clock() - put_at > KEPT_S:
                del self._pages[key]
                return None
            self._pages.move_to_end(key)
        return ShelvedPage(key, url, zlib.decompress(packed).decode())

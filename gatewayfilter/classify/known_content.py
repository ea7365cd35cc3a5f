"""Judgements of content that was judged a moment ago, so that the same bytes at another URL are not read again.

A URL counts in a judgement by the words in it, by the extraction rule that is for it, and where a page may be a login clone. Only
judgements in which none of these had a part are kept, and only where none has a part they are used (`PageClassifier`).
"""

import threading
from collections import OrderedDict

from blake3 import blake3

from gatewayfilter.interfaces import Page
from gatewayfilter.model import Classification

type ContentKey = bytes


def content_key(page: Page) -> ContentKey:
    """Returns a digest of what a page is read by, its Content-Type and its body, of which no two are made (BLAKE3, 32 bytes).

    An origin chooses the Content-Type as well, up to the longest head: it is not kept itself.
    """
    kind = page.headers.get("content-type", "").encode("utf-8", "surrogatepass")
    return blake3(len(kind).to_bytes(8)).update(kind).update(page.body).digest()


class KnownContent:
    """The judgements that were used last. Safe to share between threads.

    Args:
        most: how many; one takes some 1 KB, and 8 KB at most.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._judged: OrderedDict[ContentKey, Classification] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: ContentKey) -> Classification | None:
        """Returns the judgement of a content, `None` where it is not kept."""
        with self._lock:
            found = self._judged.get(key)
            if found is not None:
                self._judged.move_to_end(key)
            return found

    def put(self, key: ContentKey, found: Classification) -> None:
        """Keeps a judgement; the one that was not used for longest is forgotten for it."""
        with self._lock:
            self._judged[key] = found
            self._judged.move_to_end(key)
            if len(self._judged) > self._most:
                self._judged.popitem(last=False)

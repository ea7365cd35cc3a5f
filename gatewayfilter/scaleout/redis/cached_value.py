"""The stored form of a fingerprint in Redis: versioned, bounded, and authenticated with the key of the fingerprints.

A value has a head of 40 bytes and a JSON text. The head: version, `P` for a reviewer's decision or `C` for the classifier's,
16 bytes of a keyed BLAKE2b over all that follows the key and never changes, and the hits and the expiry, which scripts of Redis
change.
"""

import hmac
import json
import math
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from gatewayfilter.model import ContentId, Fingerprint
from gatewayfilter.store.sql.classification_json import as_document, from_document

VERSION: Final = b"1"
MOST_BYTES: Final = 32_768
"""Longer values are neither written nor read: evidence is some 2 KB."""
HEAD_BYTES: Final = 40
_MAC: Final = slice(2, 18)
_HITS: Final = slice(18, 26)
_EXPIRY: Final = slice(26, HEAD_BYTES)
_read_json: Final = json.JSONDecoder().decode
_LATEST: Final = 9_999_999_999.0
TAGS: Final = tuple(f"{number:02x}" for number in range(64))
"""Hash tags: keys of one tag lie in one slot, so that one command reads them all."""


@dataclass(frozen=True, slots=True)
class ValueCodec:
    """Writes and reads values.

    Attributes:
        key: 32 secret bytes, the same on all machines that share a cache.
    """

    key: bytes

    @property
    def space(self) -> str:
        """The name space of the keys: machines with another key do not meet these values."""
        return blake2b(key=self.key, digest_size=4, person=b"gf-cache-name").hexdigest()

    def encode(self, fingerprint: Fingerprint) -> bytes | None:
        """Returns the value, `None` for one that is too long."""
        document = [
            as_document(fingerprint.classification),
            fingerprint.judge,
            fingerprint.words,
            fingerprint.url,
            fingerprint.judged_at,
        ]
        text = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
        if len(text) > MOST_BYTES - HEAD_BYTES:
            return None
        flag = b"P" if fingerprint.judge else b"C"
        numbers = f"{min(fingerprint.hits, 2**31):08x}{min(max(fingerprint.expires_at, 0.0), _LATEST):014.3f}".encode()
        return b"".join((VERSION, flag, self._mac(fingerprint.content, flag, text), numbers, text))

    def decode(self, content: ContentId, value: bytes) -> Fingerprint | None:
        """Returns the fingerprint of this content, `None` for a broken or forged value, or one of another version."""
        if not HEAD_BYTES < len(value) <= MOST_BYTES or value[:1] != VERSION:
            return None
        text = value[HEAD_BYTES:]
        if not hmac.compare_digest(value[_MAC], self._mac(content, value[1:2], text)):
            return None
        try:
            document, judge, words, url, judged_at = _read_json(text.decode())
            hits, expires_at = int(value[_HITS], 16), float(value[_EXPIRY])
            if not math.isfinite(expires_at) or bool(judge) != (value[1:2] == b"P"):
                return None
            return Fingerprint(content, from_document(document), judge, words, url, judged_at, expires_at, hits)
        except (ValueError, TypeError, KeyError, RecursionError):
            return None

    def _mac(self, content: ContentId, flag: bytes, text: bytes) -> bytes:
        mac = blake2b(key=self.key, digest_size=16, person=b"gf-cache-value")
        mac.update(b"%s%s%s%s%s" % (VERSION, flag, content.digest, content.proof, content.kind.encode()))
        mac.update(text)
        return mac.digest()


def tag_of(content: ContentId) -> str:
    """Returns the hash tag of a content's key."""
    return TAGS[content.digest[0] & 63]


def key_of(space: str, content: ContentId) -> str:
    """Returns the key of a content: hexadecimal, never raw bytes."""
    return f"gf:{{{tag_of(content)}}}:{space}:{content.kind[0]}:{content.digest.hex()}"

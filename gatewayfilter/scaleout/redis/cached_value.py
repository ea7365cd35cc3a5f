"""The stored form of a fingerprint in Redis: versioned, bounded, and authenticated with the key of the fingerprints.

A value has a head of 40 bytes and a body. The head: version of the body, `P` for a reviewer's decision or `C` for the
classifier's, 16 bytes of a keyed BLAKE2b over all that follows the key and never changes, and the hits and the expiry, which
scripts of Redis change. The body is binary (version 2, packed_verdict.py) or JSON (version 1).

Machines of the release before read version 1 only, and replace what they cannot read. So a reviewer's decision, which they
must not replace, is always JSON.
"""

import hmac
import json
import math
import struct
from dataclasses import dataclass, fields
from hashlib import blake2b
from typing import Final

from gatewayfilter.model import ContentId, Fingerprint
from gatewayfilter.model.values.frozen import made
from gatewayfilter.scaleout.redis.packed_verdict import pack, unpack
from gatewayfilter.store.sql.classification_json import as_document, from_document

JSON: Final = b"1"
"""Version of a value with a JSON text."""
BINARY: Final = b"2"
"""Version of a value with a packed verdict, of the classifier only."""
MOST_BYTES: Final = 32_768
"""Longer values are neither written nor read: evidence is some 2 KB."""
HEAD_BYTES: Final = 40
_MAC: Final = slice(2, 18)
_HITS: Final = slice(18, 26)
_EXPIRY: Final = slice(26, HEAD_BYTES)
_PACKED: Final = BINARY + b"C"
_DECIDED: Final = JSON + b"P"
_KINDS: Final = frozenset((_PACKED, _DECIDED, JSON + b"C"))
_ROW: Final = tuple(attribute.name for attribute in fields(Fingerprint))
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
        version, flag, body = BINARY, b"C", None
        if fingerprint.judge:
            flag = b"P"
        else:
            body = pack(fingerprint.classification, fingerprint.words, fingerprint.url, fingerprint.judged_at)
        if body is None:
            version, body = JSON, _as_json(fingerprint)
        if len(body) > MOST_BYTES - HEAD_BYTES:
            return None
        numbers = f"{min(fingerprint.hits, 2**31):08x}{min(max(fingerprint.expires_at, 0.0), _LATEST):014.3f}".encode()
        return b"".join((version, flag, self._mac(fingerprint.content, version + flag, body), numbers, body))

    def decode(self, content: ContentId, value: bytes) -> Fingerprint | None:
        """Returns the fingerprint of this content, `None` for a broken or forged value, or one of another version."""
        if not HEAD_BYTES < len(value) <= MOST_BYTES:
            return None
        kind = value[:2]
        if kind not in _KINDS or not hmac.compare_digest(value[_MAC], self._mac(content, kind, value[HEAD_BYTES:])):
            return None
        try:
            hits, expires_at = int(value[_HITS], 16), float(value[_EXPIRY])
            if not math.isfinite(expires_at):
                return None
            if kind == _PACKED:
                said, words, url, judged_at = unpack(value, HEAD_BYTES)
                row = (content, said, "", words, url, judged_at, expires_at, hits)
                return made(Fingerprint, _ROW, (row,))[0]
            document, judge, words, url, judged_at = _read_json(value[HEAD_BYTES:].decode())
            if bool(judge) != (kind == _DECIDED):
                return None
            return Fingerprint(content, from_document(document), judge, words, url, judged_at, expires_at, hits)
        except (ValueError, TypeError, KeyError, RecursionError, struct.error):
            return None

    def _mac(self, content: ContentId, kind: bytes, body: bytes) -> bytes:
        mac = blake2b(key=self.key, digest_size=16, person=b"gf-cache-value")
        mac.update(b"%s%s%s%s%s" % (kind, content.digest, content.proof, content.kind.encode(), body))
        return mac.digest()


def _as_json(fingerprint: Fingerprint) -> bytes:
    document = [
        as_document(fingerprint.classification),
        fingerprint.judge,
        fingerprint.words,
        fingerprint.url,
        fingerprint.judged_at,
    ]
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


def tag_of(content: ContentId) -> str:
    """Returns the hash tag of a content's key."""
    return TAGS[content.digest[0] & 63]


def key_of(space: str, content: ContentId) -> str:
    """Returns the key of a content: hexadecimal, never raw bytes."""
    return f"gf:{{{tag_of(content)}}}:{space}:{content.kind[0]}:{content.digest.hex()}"

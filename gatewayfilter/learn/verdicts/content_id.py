"""The identity of content: a digest for lookup, a keyed BLAKE3 for verification.

Source: [page-dedup] a page, a text or an image is known again by its MD5.
Deviation: MD5 can be collided on purpose (a harmless twin would open a harmful page), so 128 bits of a keyed BLAKE3 over the
whole content must agree. They spread, too, so that a page has no MD5 beside them. BLAKE3 and not BLAKE2b, because hashing is
nearly all that knowing a page costs (docs/decisions/0003-fingerprints.md).
"""

import os
import secrets
from hashlib import md5
from pathlib import Path

from blake3 import blake3

from gatewayfilter.errors import StartupError
from gatewayfilter.model import ContentId, ContentKind

KEY_BYTES = 32


class ContentIds:
    """Identifies content by a keyed hash: without the key two contents with one identifier cannot be made.

    Args:
        key: 32 random bytes; other keys make other identities.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def of_page(self, body: bytes) -> ContentId:
        """Returns the identity of a page's decoded body. Costs about 0.2 µs a KB."""
        proof = self._proof(body)
        return ContentId(ContentKind.PAGE, proof, proof)

    def of_text(self, text: str) -> ContentId:
        """Returns the identity of a page's visible text."""
        data = text.encode(errors="replace")
        return ContentId(ContentKind.TEXT, md5(data, usedforsecurity=False).digest(), self._proof(data))

    def _proof(self, data: bytes) -> bytes:
        return blake3(data, key=self._key).digest(16)


def image_digest(body: bytes) -> bytes:
    """Returns the MD5 of an image, as lists of known images give it."""
    return md5(body, usedforsecurity=False).digest()


def image_identity(digest: bytes) -> ContentId:
    """Returns the identity of an image with this MD5.

    Images are only ever known as bad, from lists of MD5s: who makes another one with the same MD5 gets it blocked too, and
    opens nothing. So there is no proof to ask for.
    """
    return ContentId(ContentKind.IMAGE, digest, bytes(16))


def load_key(path: Path) -> bytes:
    """Returns the secret key in this file, made with mode 0600 when there is none; several processes may come at once.

    Raises:
        StartupError: it cannot be read or made, or is of another length.
    """
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        key = _make_key(path)
    except OSError as error:
        raise StartupError(f"cannot read the key of the fingerprints {path}: {error.strerror}") from error
    if len(key) != KEY_BYTES:
        raise StartupError(f"the key of the fingerprints {path} is damaged: remove it, and known pages are judged again")
    return key


def _make_key(path: Path) -> bytes:
    aside = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(aside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.write(secrets.token_bytes(KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(aside, path)  # fails when another process was faster: its key counts
        except FileExistsError:
            pass
        finally:
            aside.unlink()
        return path.read_bytes()
    except OSError as error:
        raise StartupError(f"cannot make the key of the fingerprints {path}: {error.strerror}") from error

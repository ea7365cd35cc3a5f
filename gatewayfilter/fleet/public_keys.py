"""Public keys of publishers, as they are written in settings: `ed25519:BASE64`."""

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from typing import Final

from gatewayfilter.errors import FleetError

PREFIX: Final = "ed25519:"
KEY_BYTES: Final = 32


def parse_public_key(text: str) -> bytes:
    """Returns the 32 bytes of a public key that is written `ed25519:BASE64`.

    Raises:
        FleetError: it is none.
    """
    try:
        raw = b64decode(text.removeprefix(PREFIX), validate=True)
    except (Base64Error, ValueError):
        raw = b""
    if not text.startswith(PREFIX) or len(raw) != KEY_BYTES:
        raise FleetError(f"{text[:80]!r} is no public key of a fleet: ed25519: and 44 characters, as `fleet key` prints it")
    return raw


def write_public_key(raw: bytes) -> str:
    """Returns a public key as it is written in settings."""
    return PREFIX + b64encode(raw).decode("ascii")

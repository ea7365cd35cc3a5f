"""Random secrets of sessions and tokens, of which the database has digests alone, and signed marks of browsers."""

import hashlib
import hmac
import secrets
from typing import Final

TOKEN_PREFIX: Final = "gwf_"  # noqa: S105  recognised by scanners of leaked secrets

_BYTES: Final = 32
_DEVICE_NONCE: Final = 12


def new_session_secret() -> str:
    """Returns 256 random bits as text."""
    return secrets.token_urlsafe(_BYTES)


def new_api_token() -> str:
    """Returns a new token of the API: `gwf_` and 256 random bits."""
    return TOKEN_PREFIX + secrets.token_urlsafe(_BYTES)


def digest_of_secret(secret: str) -> bytes:
    """Returns the SHA-256 of a secret. It has 256 random bits, so that a fast hash is enough."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()


def sign_device(key: bytes, account_id: int) -> str:
    """Returns a mark for a browser in which an account has logged in: it delays no other browser's attempts."""
    nonce = secrets.token_urlsafe(_DEVICE_NONCE)
    return f"{nonce}.{_mac(key, account_id, nonce)}"


def read_device(key: bytes, account_id: int, mark: str) -> str:
    """Returns what identifies the browser of a mark, `""` for a mark that was not made for this account."""
    nonce, _, mac = mark.partition(".")
    if not mark.isascii() or len(mark) > 200 or not hmac.compare_digest(mac, _mac(key, account_id, nonce)):
        return ""
    return nonce


def _mac(key: bytes, account_id: int, nonce: str) -> str:
    return hmac.new(key, f"device {account_id} {nonce}".encode(), "sha256").hexdigest()[:32]

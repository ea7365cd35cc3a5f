"""Encryption of what may not lie open in a backup: scrypt for the key, AES-256-GCM for the content."""

import os
from typing import Final

from gatewayfilter.errors import BackupError

MIN_PASSPHRASE: Final = 8
_MAX_PASSPHRASE: Final = 1024
_HEAD: Final = b"gatewayfilter-sealed-1\n"
_SALT: Final = 16
_NONCE: Final = 12
_COST: Final = 2**17
"""With blocks of 1 KiB: 128 MiB and some 0.4 s for each guess. Source: OWASP Password Storage Cheat Sheet, scrypt."""


def check_passphrase(passphrase: str) -> str:
    """Returns the passphrase.

    Raises:
        BackupError: it is too short or too long.
    """
    if len(passphrase) < MIN_PASSPHRASE:
        raise BackupError(f"the passphrase is too short: use at least {MIN_PASSPHRASE} characters")
    if len(passphrase) > _MAX_PASSPHRASE:
        raise BackupError(f"the passphrase is too long: use at most {_MAX_PASSPHRASE} characters")
    return passphrase


def seal(content: bytes, passphrase: str) -> bytes:
    """Returns the content, encrypted and authenticated.

    Raises:
        BackupError: the passphrase cannot be used.
    """
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415  8 MB, for encryption alone

    salt, nonce = os.urandom(_SALT), os.urandom(_NONCE)
    cipher = AESGCM(_key(check_passphrase(passphrase), salt))
    return _HEAD + salt + nonce + cipher.encrypt(nonce, content, _HEAD)


def unseal(sealed: bytes, passphrase: str) -> bytes:
    """Returns the content.

    Raises:
        BackupError: the passphrase is wrong, or what was encrypted was changed.
    """
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415  8 MB, for encryption alone
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415

    start = len(_HEAD) + _SALT + _NONCE
    if not sealed.startswith(_HEAD) or len(sealed) < start:
        raise BackupError("the encrypted part of the backup was written by a newer version, or is damaged")
    salt, nonce = sealed[len(_HEAD) : len(_HEAD) + _SALT], sealed[len(_HEAD) + _SALT : start]
    try:
        return AESGCM(_key(passphrase, salt)).decrypt(nonce, sealed[start:], _HEAD)
    except InvalidTag as error:
        raise BackupError("the passphrase is wrong, or the encrypted part of the backup is damaged") from error


def _key(passphrase: str, salt: bytes) -> bytes:
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt  # noqa: PLC0415  8 MB, for encryption alone

    try:
        return Scrypt(salt=salt, length=32, n=_COST, r=8, p=1).derive(passphrase.encode())
    except UnicodeEncodeError as error:
        raise BackupError("the passphrase is not text in UTF-8") from error
    except MemoryError as error:
        raise BackupError("too little memory to encrypt: 128 MB are needed") from error

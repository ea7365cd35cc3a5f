"""Ed25519 keys of a fleet: the publisher's signing keys in a file of mode 0600, and public keys as they are written in settings.

A rotation makes a second key. Until it is finished, manifests carry both signatures and name both keys; a follower that sees
such a manifest trusts both. After it, manifests name the new key alone, and followers no longer trust the old one.
"""

import fcntl
import json
import logging
import os
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from gatewayfilter.errors import FleetError
from gatewayfilter.fleet.public_keys import KEY_BYTES
from gatewayfilter.private_files import private, replace_file

_log = logging.getLogger(__name__)

_LARGEST_FILE: Final = 4_096
MOST_KEYS: Final = 2
"""Keys in use at once: the current one, and the next one while a rotation is under way."""


def is_signed(payload: bytes, signature: bytes, key: bytes) -> bool:
    """Returns whether a signature of a payload was made with a key."""
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, payload)
    except (InvalidSignature, ValueError):
        return False
    return True


@dataclass(frozen=True, slots=True)
class SigningKeys:
    """The private keys of a publisher, 32 bytes each, the current one first."""

    secrets: tuple[bytes, ...]

    @property
    def public(self) -> tuple[bytes, ...]:
        """The public keys, in the same order."""
        keys = map(Ed25519PrivateKey.from_private_bytes, self.secrets)
        return tuple(key.public_key().public_bytes_raw() for key in keys)

    def sign(self, payload: bytes) -> tuple[tuple[bytes, bytes], ...]:
        """Returns public key and signature, for each key."""
        keys = map(Ed25519PrivateKey.from_private_bytes, self.secrets)
        return tuple((key.public_key().public_bytes_raw(), key.sign(payload)) for key in keys)


class KeyFile:
    """The file of the signing keys.

    Args:
        path: made with mode 0600.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def exists(self) -> bool:
        """Returns whether there is one: this machine is a publisher."""
        return self._path.exists()

    def read(self) -> SigningKeys:
        """Returns the keys.

        Raises:
            FleetError: there is no file, or it cannot be used.
        """
        try:
            with self._path.open("rb") as file:
                _keep_private(file, self._path)
                texts = json.loads(file.read(_LARGEST_FILE))["keys"]
            secrets = tuple(b64decode(text, validate=True) for text in texts)
        except FileNotFoundError as error:
            raise FleetError("this machine has no signing key: run `gatewayfilter fleet init` on the publisher") from error
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise FleetError(f"cannot use the signing keys in {self._path}: {_reason(error)}") from error
        if not 1 <= len(secrets) <= MOST_KEYS or any(len(secret) != KEY_BYTES for secret in secrets):
            raise FleetError(f"cannot use the signing keys in {self._path}: they are not Ed25519 keys")
        return SigningKeys(secrets)

    def create(self) -> SigningKeys:
        """Makes the first key.

        Raises:
            FleetError: there is one already, or the file cannot be written.
        """
        with self._changing():
            if self.exists():
                raise FleetError(f"there is a signing key already in {self._path}: `fleet rotate` makes another")
            return self._write(SigningKeys((_new_secret(),)))

    def rotate(self) -> SigningKeys:
        """Adds the next key, which signs beside the current one.

        Raises:
            FleetError: a rotation is under way, or the file cannot be used.
        """
        with self._changing():
            keys = self.read()
            if len(keys.secrets) == MOST_KEYS:
                raise FleetError(
                    "a rotation is under way: `fleet rotate --finish` ends it once every follower has seen the new key"
                )
            return self._write(SigningKeys((*keys.secrets, _new_secret())))

    def finish(self) -> SigningKeys:
        """Removes the older key.

        Raises:
            FleetError: no rotation is under way, or the file cannot be used.
        """
        with self._changing():
            keys = self.read()
            if len(keys.secrets) != MOST_KEYS:
                raise FleetError("no rotation is under way: `fleet rotate` begins one")
            return self._write(SigningKeys(keys.secrets[1:]))

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Keeps other commands from changing the keys meanwhile: a key that was printed would be lost."""
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = open(self._path.with_suffix(".lock"), "ab", opener=private)  # noqa: SIM115  closed below
        except OSError as error:
            raise FleetError(f"cannot write {self._path}: {error.strerror}") from error
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _write(self, keys: SigningKeys) -> SigningKeys:
        document = json.dumps({"keys": [b64encode(secret).decode("ascii") for secret in keys.secrets]})
        try:
            replace_file(self._path, document.encode("ascii"))
        except OSError as error:
            raise FleetError(f"cannot write {self._path}: {error.strerror}") from error
        return keys


def _keep_private(file: BinaryIO, path: Path) -> None:
    """Takes a key file from others who may read it, as after a copy, and logs it: they may have read it."""
    if not os.fstat(file.fileno()).st_mode & 0o077:
        return
    _log.warning("others could read the signing keys in %s: the mode is 0600 now; `fleet rotate` makes another key", path)
    with suppress(OSError):
        os.fchmod(file.fileno(), 0o600)


def _new_secret() -> bytes:
    return Ed25519PrivateKey.generate().private_bytes_raw()


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or "it is damaged"

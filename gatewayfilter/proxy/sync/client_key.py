"""The secret key of a state folder with which `log.hash_clients` hashes the addresses of clients."""

import os
import secrets
from hashlib import blake2b
from pathlib import Path
from typing import Final

from gatewayfilter.errors import StartupError

_KEY_BYTES: Final = 32
_HASH_BYTES: Final = 8


def hash_client(client: str, key: bytes) -> str:
    """Returns what stands in the log for an address, or for a proxy user as `user:NAME`: a keyed BLAKE2b hash."""
    return blake2b(client.encode(errors="surrogateescape"), digest_size=_HASH_BYTES, key=key).hexdigest()


def load_client_key(data_dir: Path) -> bytes:
    """Returns the secret of this state folder, made when there is none.

    Raises:
        StartupError: it can be neither read nor made.
    """
    path = data_dir / "client.key"
    try:
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return path.read_bytes()
        with os.fdopen(descriptor, "wb") as file:
            key = secrets.token_bytes(_KEY_BYTES)
            file.write(key)
            return key
    except OSError as error:
        raise StartupError(f"cannot read or make {path}: {error.strerror}") from error

"""Secret keys of a state folder, each in a file of its own that only its owner can read."""

import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Final

from gatewayfilter.errors import StartupError
from gatewayfilter.private_files import private

REQUEST_KEY: Final = "request.key"
"""Signs bypass links and the addresses of the pages that show a request's state."""

_BYTES: Final = 32


def load_key(data_dir: Path, name: str) -> bytes:
    """Returns a secret of this state folder, 32 bytes, made when there is none.

    Processes that make it at the same time get the same one.

    Raises:
        StartupError: it can be neither read nor made, or is no key.
    """
    path = data_dir / name
    try:
        if not path.exists():
            _make(path)
        key = path.read_bytes()
        if path.stat().st_mode & 0o077:
            path.chmod(0o600)
    except OSError as error:
        raise StartupError(f"cannot read or make {path}: {error.strerror}") from error
    if len(key) != _BYTES:
        raise StartupError(f"{path} is no key of {_BYTES} bytes; remove it, and earlier links no longer work")
    return key


def _make(path: Path) -> None:
    made = path.with_name(f".{path.name}-{os.getpid()}-{secrets.token_hex()}")
    try:
        with open(made, "wb", opener=private) as file:
            file.write(secrets.token_bytes(_BYTES))
        with suppress(FileExistsError):  # another process was faster: its key counts
            os.link(made, path)
    finally:
        made.unlink(missing_ok=True)

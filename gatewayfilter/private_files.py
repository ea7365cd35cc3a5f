"""Files of the state folder are for their owner alone, whatever the umask is: `open(path, "w", opener=private)`."""

import os
import stat
from pathlib import Path


def private(path: str, flags: int) -> int:
    """Opens a file, made with mode 0600 where there was none; an older one gets that mode. An opener for `open`.

    What is no file keeps its mode: `/dev/null` is for everybody.

    Raises:
        OSError: it cannot be opened.
    """
    descriptor = os.open(path, flags, 0o600)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode) and mode & 0o077:
        os.fchmod(descriptor, 0o600)
    return descriptor


def make_private(path: Path, mode: int) -> None:
    """Gives a file or folder a mode; one that has it is not touched, which would fail on a read-only disk.

    Raises:
        OSError: it is not there, or its mode cannot be changed.
    """
    if stat.S_IMODE(path.stat().st_mode) != mode:
        path.chmod(mode)


def replace_file(path: Path, content: bytes) -> None:
    """Writes a file whole, with mode 0600, and puts it in the place of an earlier one by a rename.

    Raises:
        OSError: it cannot be written; the earlier file stays.
    """
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(aside, "wb", opener=private) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        aside.rename(path)
    except OSError:
        aside.unlink(missing_ok=True)
        raise

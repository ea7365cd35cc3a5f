"""Files of the state folder are for their owner alone, whatever the umask is: `open(path, "w", opener=private)`."""

import os


def private(path: str, flags: int) -> int:
    """Opens a file, made with mode 0600 where there was none; an older one gets that mode. An opener for `open`.

    Raises:
        OSError: it cannot be opened.
    """
    descriptor = os.open(path, flags, 0o600)
    if os.fstat(descriptor).st_mode & 0o077:
        os.fchmod(descriptor, 0o600)
    return descriptor

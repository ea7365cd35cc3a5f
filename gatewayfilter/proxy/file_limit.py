"""The limit of open files of a process that serves connections."""

import resource
from typing import Final

_MOST_FILES: Final = 65_536


def raise_file_limit() -> None:
    """Allows as many open files as the system does: a client's connection takes two, and a shell's limit is often 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))

"""Lower scheduling priority for heavy work: on a box with few cores a publication would otherwise delay requests."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

NICENESS = 10
"""Of 0 (as urgent as all else) to 19: about a tenth of a core that a proxy worker uses as well, all of an idle one."""


@contextmanager
def low_priority() -> Iterator[None]:
    """Lowers the priority of this thread while it works, and restores it afterwards where the system lets it.

    Only for a process without clients: without the right to raise priorities it stays at the lower one.
    """
    before = os.getpriority(os.PRIO_PROCESS, 0)
    if before < NICENESS:
        os.setpriority(os.PRIO_PROCESS, 0, NICENESS)
    try:
        yield
    finally:
        with suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, before)

"""The processes of `gatewayfilter run`: a supervisor over one proxy worker a core and the learner."""

from collections.abc import Callable

from gatewayfilter.config import Loaded
from gatewayfilter.processes.fork_server import start_fork_server


def run(loaded: Loaded, say: Callable[[str], None] = print) -> int:
    """Runs the filter until SIGTERM or Ctrl-C.

    Args:
        loaded: all settings, with their origins.
        say: prints lines for the operator.

    Returns:
        The exit code: 0 after a clean stop.

    Raises:
        StartupError, StoreError, SnapshotError: it cannot start.
    """
    # First of all: what it imports takes longer than everything else that a start does, and goes on beside it.
    context = start_fork_server()
    from gatewayfilter.processes.supervisor import supervise  # noqa: PLC0415  while the fork server imports
    from gatewayfilter.use_cases.settings_files import check_files  # noqa: PLC0415  likewise

    check_files(loaded.settings)
    return supervise(loaded, context, say)

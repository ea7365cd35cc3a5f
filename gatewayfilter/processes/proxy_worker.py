"""The entry of a proxy worker's process."""

from multiprocessing.connection import Connection

from gatewayfilter.config import Settings, UnknownRule
from gatewayfilter.processes.inspection.client import InspectionPool
from gatewayfilter.processes.supervision.child_setup import begin_child
from gatewayfilter.processes.supervision.gc_tuning import freeze_startup, trim_regularly
from gatewayfilter.processes.supervision.heartbeat import Heartbeat
from gatewayfilter.proxy.components import WorkerComponents
from gatewayfilter.proxy.worker import run_worker
from gatewayfilter.wiring.proxy import worker_components


def run_proxy_worker(index: int, settings: Settings, line: Connection) -> None:
    """Runs a proxy worker until SIGTERM, with heartbeats on `line`. Exits with 2 when it cannot start."""
    begin_child(settings)
    run_worker(index, settings, tuned_components, Heartbeat(line))


def tuned_components(settings: Settings) -> WorkerComponents:
    """As `open_components`, with the garbage collector tuned for a process that serves nothing else.

    Raises:
        SnapshotError, StartupError: as `open_components`.
    """
    components = open_components(settings)
    freeze_startup()
    trim_regularly()
    return components


def open_components(settings: Settings, *, standalone: bool = False) -> WorkerComponents:
    """Opens what a proxy process runs, with the inspector's process where pages are inspected.

    Raises:
        SnapshotError: there is no good snapshot.
        StartupError: a file of the state folder cannot be used.
    """
    inspector = InspectionPool(settings) if settings.proxy.unknown is UnknownRule.INSPECT else None
    return worker_components(settings, inspector, standalone=standalone)

"""The entry points of child processes. Cheap to import: the heavy modules are loaded once, by the fork server."""

import os
from multiprocessing.connection import Connection

from gatewayfilter.config import Settings

PRELOAD = (
    "gatewayfilter.processes.proxy_worker",
    "gatewayfilter.processes.learner",
    "gatewayfilter.processes.crawler",
    "gatewayfilter.processes.preload",
)
"""What the fork server imports once, so that a child starts in milliseconds and shares the memory of it."""


def worker_count(settings: Settings) -> int:
    """Returns how many proxy workers run: as set, else one for each core that this process may use."""
    return settings.proxy.workers or len(os.sched_getaffinity(0))


def proxy_worker(index: int, settings: Settings, line: Connection) -> None:
    """Runs a proxy worker until SIGTERM, with heartbeats on `line`."""
    from gatewayfilter.processes.proxy_worker import run_proxy_worker  # noqa: PLC0415  preloaded

    run_proxy_worker(index, settings, line)


def crawler(index: int, settings: Settings) -> None:
    """Runs a further crawler until SIGTERM."""
    from gatewayfilter.processes.crawler import run_crawler  # noqa: PLC0415  preloaded

    run_crawler(index, settings)


def metrics(settings: Settings) -> None:
    """Serves the counters to Prometheus until SIGTERM."""
    from gatewayfilter.processes.metrics.endpoint import run_metrics  # noqa: PLC0415  only where it is wanted

    run_metrics(settings)


def learner(settings: Settings) -> None:
    """Runs the learner until SIGTERM."""
    from gatewayfilter.processes.learner import run_learner  # noqa: PLC0415  preloaded

    run_learner(settings)

"""The entry points of child processes. Cheap to import: the heavy modules are loaded once, by the fork server."""

import os
from multiprocessing.connection import Connection

from gatewayfilter.config import Loaded, Settings

PRELOAD = (
    "gatewayfilter.proxy.selected_addons",  # before mitmproxy
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


def fleet(settings: Settings) -> None:
    """Publishes to a fleet, or follows one, until SIGTERM."""
    from gatewayfilter.processes.fleet import run_fleet  # noqa: PLC0415  only where it is wanted

    run_fleet(settings)


def decisions(settings: Settings) -> None:
    """Sends the filter's own decisions to Kafka until SIGTERM."""
    from gatewayfilter.processes.sharing.decisions import run_decisions  # noqa: PLC0415  only where it is wanted

    run_decisions(settings)


def serves_others(settings: Settings) -> bool:
    """Returns whether any other proxy or resolver is served."""
    return bool(
        settings.helper.socket or settings.icap.listen or settings.rpz.listen or settings.rpz.file or settings.decide.listen
    )


def integration(settings: Settings) -> None:
    """Decides for other proxies until SIGTERM."""
    from gatewayfilter.processes.integration.daemon import run_integration  # noqa: PLC0415  only where it is wanted

    run_integration(settings)


def sync(settings: Settings) -> None:
    """Keeps rules, policies and sources in step with other gateways until SIGTERM."""
    from gatewayfilter.processes.sharing.sync import run_sync  # noqa: PLC0415  only where it is wanted

    run_sync(settings)


def web(loaded: Loaded) -> None:
    """Serves the dashboard until SIGTERM. Runs in a process that is not forked: it imports nothing of the proxy."""
    from gatewayfilter.processes.web import run_web  # noqa: PLC0415  only in its own process

    run_web(loaded)


def learner(settings: Settings) -> None:
    """Runs the learner until SIGTERM."""
    from gatewayfilter.processes.learner import run_learner  # noqa: PLC0415  preloaded

    run_learner(settings)

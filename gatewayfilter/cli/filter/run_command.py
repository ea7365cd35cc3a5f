"""`gatewayfilter run`."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.ui.command import FilterCommand

if TYPE_CHECKING:
    from gatewayfilter.cli.ui.command_context import Invocation
    from gatewayfilter.config import Loaded

_log = logging.getLogger(__name__)


@click.command(
    cls=FilterCommand,
    examples=(
        "gatewayfilter run",
        "gatewayfilter run --listen 0.0.0.0:8080 --workers 4",
        "gatewayfilter run --mode upstream:http://proxy.example:3128",
    ),
    short_help="Start the filter: proxy workers and learner.",
)
@click.option("--listen", metavar="HOST:PORT", help="Address and port for clients, in place of proxy.listen.")
@click.option("--mode", metavar="MODE", help="regular, transparent or upstream:URL, in place of proxy.mode.")
@click.option("--workers", type=int, metavar="N", help="Proxy processes, 0 for one a core, in place of proxy.workers.")
@click.option("--no-learn", is_flag=True, help="Do not fetch and judge unknown pages.")
@click.option("--no-web", is_flag=True, help="Do not serve the dashboard.")
@click.pass_obj
def run(
    invocation: Invocation, *, listen: str | None, mode: str | None, workers: int | None, no_learn: bool, no_web: bool
) -> int:
    """Start the filter: one proxy worker a core, and the learner that fetches and classifies pages on no list.

    It runs until Ctrl-C or SIGTERM and then lets open requests end. Settings given here win over the file and the
    environment.
    """
    from gatewayfilter.processes import run as run_processes

    options = {
        "proxy__listen": listen,
        "proxy__mode": mode,
        "proxy__workers": workers,
        "learn__enabled": False if no_learn else None,
        "web__listen": "" if no_web else None,
    }
    loaded = invocation.loaded(_log_warning, **options)
    if (loaded.settings.data_dir / ".restore").exists():
        _complete_restore(loaded)
        loaded = invocation.loaded(_log_warning, **options)  # the file may be a restored one
    return run_processes(loaded)


def _complete_restore(loaded: Loaded) -> None:
    """Completes a restore that was killed half way. The filter starts also where that fails, with what it has."""
    from contextlib import closing

    from gatewayfilter.cli.ui.command_context import open_store
    from gatewayfilter.errors import GatewayFilterError
    from gatewayfilter.telemetry import set_up_logging
    from gatewayfilter.use_cases.backup import finish_interrupted

    set_up_logging(loaded.settings.log.level, loaded.settings.log.format)
    try:
        with closing(open_store(loaded.settings)) as store:
            if finish_interrupted(store, loaded.settings.data_dir):
                _log.warning("completed a restore that was interrupted")
    except GatewayFilterError as error:
        _log.error("%s", error)


def _log_warning(loaded: Loaded) -> None:
    """Writes the warning as a line of the process log, which may be JSON."""
    from gatewayfilter.telemetry import set_up_logging

    set_up_logging(loaded.settings.log.level, loaded.settings.log.format)
    _log.warning(loaded.warning)

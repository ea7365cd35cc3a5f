"""What the processes of a parallel run send to the one that leads them: nothing of which it makes nothing.

For each test there would be six messages. The leader counts a test by the report of its call; that a set-up passed, or a test
begins, changes nothing that it prints.
"""

from typing import Any, Final

import pytest

_SLOW_S: Final = 0.1
"""Set-ups and tear-downs that take longer are sent as well, for `--durations`."""


def install(config: pytest.Config) -> None:
    """Has a process of pytest-xdist send less, unless a report in XML is made, which has all."""
    if not hasattr(config, "workerinput") or config.getoption("xmlpath"):
        return
    plugins = config.pluginmanager
    sender: Any = next(plugin for plugin in plugins.get_plugins() if type(plugin).__name__ == "WorkerInteractor")
    plugins.unregister(sender)
    logreport, logfinish = sender.pytest_runtest_logreport, sender.pytest_runtest_logfinish

    def pytest_runtest_logreport(report: pytest.TestReport) -> None:
        if report.when == "call" or not report.passed or report.duration > _SLOW_S:
            logreport(report)

    def pytest_runtest_logfinish(nodeid: str, location: tuple[str, int | None, str]) -> None:
        if not isinstance(sender.nextitem_index, int):  # the last one of this process: it ends the line of dots
            logfinish(nodeid, location)

    sender.pytest_runtest_logstart = None
    sender.pytest_runtest_logreport = pytest_runtest_logreport
    sender.pytest_runtest_logfinish = pytest_runtest_logfinish
    plugins.register(sender)

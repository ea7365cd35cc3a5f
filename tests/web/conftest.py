"""One child process for all tests of a test process: starting one loads the classifier, which takes a second of CPU time."""

import functools
from collections.abc import Callable, Generator
from contextlib import ExitStack
from typing import Any

import pytest

from gatewayfilter.web import services
from gatewayfilter.web.child_process import TIMEOUT_S, ChildProcess

PATIENCE = 10
"""How much longer than in the product children may work: they have the least of a machine that is busy with other things."""


class PatientChild(ChildProcess):
    """A child with more time."""

    def __init__(self, timeout_s: float = TIMEOUT_S, *more: Any, **named: Any) -> None:
        super().__init__(PATIENCE * timeout_s, *more, **named)


class KeptChild(PatientChild):
    """A child that outlives the services that use it."""

    def close(self) -> None:
        """Leaves it to the next test."""

    def end(self) -> None:
        """Ends it."""
        super().close()


@pytest.fixture(scope="session")
def _kept_children() -> Generator[Callable[..., ChildProcess]]:
    with ExitStack() as ends:

        @functools.cache
        def kept(*arguments: Any, **named: Any) -> ChildProcess:
            child = KeptChild(*arguments, **named)
            ends.callback(child.end)
            return child

        yield kept


@pytest.fixture(scope="module", autouse=True)
def _patient_children() -> Generator[None]:
    """Has dashboards that a module shares wait longer, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(services, "ChildProcess", PatientChild)
        yield


@pytest.fixture(autouse=True)
def _one_child(_kept_children: Callable[..., ChildProcess], monkeypatch: pytest.MonkeyPatch) -> None:
    """Has the services of the dashboard use the children of the tests before."""
    monkeypatch.setattr(services, "ChildProcess", _kept_children)

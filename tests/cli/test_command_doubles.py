"""Commands over doubles: a context with given settings and a given store, and what a command prints without a state folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest
from click.testing import CliRunner

from gatewayfilter.cli.root import main
from gatewayfilter.cli.ui.command import FilterGroup
from gatewayfilter.cli.ui.command_context import Invocation
from gatewayfilter.config import Loaded
from gatewayfilter.settings import Settings
from tests.all_modules import import_all
from tests.cli.conftest import Answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from gatewayfilter.cli.ui.command_context import PendingChange

import_all()

SETTINGS = Settings.model_validate({"data_dir": "/dev/null/state", "filter": {"timezone": "UTC"}})
MOMENT = 1_700_000_000.0
"""2023-11-14 22:13:20 UTC."""


class Doubled(Invocation):
    """A context that reads no file: with these settings and this store. `recorded` has what would be in the audit log."""

    def __init__(self, store: object = None, settings: Settings = SETTINGS) -> None:
        super().__init__()
        self.double = store
        self.given = settings
        self.options: list[dict[str, object]] = []
        self.recorded: list[PendingChange] = []

    def loaded(self, warn: Callable[[Loaded], None] | None = None, /, **options: object) -> Loaded:
        del warn
        self.options.append(options)
        return Loaded(self.given, {})

    @contextmanager
    def store(self) -> Iterator[Any]:
        yield self.double

    def record(self, change: PendingChange) -> None:
        self.recorded.append(change)


def called(invocation: Invocation, *arguments: object, stdin: str | bytes | None = None) -> Answer:
    """Calls a command with a context."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gatewayfilter.program_name.program_name", lambda: "gatewayfilter")
        result = CliRunner().invoke(main, [str(argument) for argument in arguments], input=stdin, obj=invocation)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Answer(result)


def texts(invocation: Invocation, *arguments: object) -> tuple[int, str, str]:
    """Returns exit code, standard output and standard error of a command."""
    answer = called(invocation, *arguments)
    return answer.code, answer.out, answer.err


def table(text: str) -> list[list[str]]:
    """Returns the cells of a printed table, split at two spaces or more; empty cells are left out."""
    return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in text.splitlines() if line.strip()]


def test_common_options_stand_before_or_after_the_name() -> None:
    for arguments in (
        ("--json", "--data-dir", "/a", "metrics", "--config", "/b"),
        ("metrics", "--data-dir", "/a", "--config", "/b"),
    ):
        context = Doubled()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("gatewayfilter.use_cases.metrics.exposition.exposition", lambda _collector: "a 1\n")
            patch.setattr("gatewayfilter.processes.supervision.run_lock.running_process", lambda _folder: 0)
            assert texts(context, *arguments) == (1, "a 1\n", "")
            patch.setattr("gatewayfilter.processes.supervision.run_lock.running_process", lambda _folder: 5)
            assert texts(context, "metrics") == (0, "a 1\n", "")
        assert (context.data_dir, context.config, context.json) == (Path("/a"), Path("/b"), arguments[0] == "--json")


def test_a_name_that_is_none_gets_the_nearest_or_all_that_there_are() -> None:
    context = Doubled()
    assert texts(context, "fleet", "statsu") == (
        2,
        "",
        "gatewayfilter: no such command 'statsu'; did you mean 'status'? (see 'gatewayfilter fleet --help')\n",
    )
    assert texts(context, "db", "qqq")[2] == (
        "gatewayfilter: no such command 'qqq'; there are status, upgrade, check, repair, rollback "
        "(see 'gatewayfilter db --help')\n"
    )
    assert texts(context, "qqq")[2] == "gatewayfilter: no such command 'qqq' (see 'gatewayfilter --help')\n"
    assert "no such option" in texts(context, "db", "--qqq")[2].lower()


def test_up_to_twelve_names_are_listed() -> None:
    for number, listed in ((12, True), (13, False)):
        group = FilterGroup("g", commands={f"command{one:02}": click.Command(f"command{one:02}") for one in range(number)})
        result = CliRunner().invoke(group, ["zzz"])
        assert ("there are command00, command01" in result.output) is listed

"""The command line as a test calls it: a state folder of its own and no settings from outside."""

import json
import os
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gatewayfilter.cli import main
from gatewayfilter.proxy.auth import user_file
from gatewayfilter.use_cases.access import passwords

Cli = Callable[..., "Answer"]


_MISSING = re.compile(
    r"there is no (?:client|group|policy|schedule|quota|service|source|request|task|crawl task|rule|account|token|change) "
    r"|no rule '|there never was|has no version"
)


@dataclass(frozen=True)
class Answer:
    """How a command ended."""

    result: Result

    @property
    def code(self) -> int:
        return self.result.exit_code

    @property
    def out(self) -> str:
        return self.result.stdout

    @property
    def err(self) -> str:
        return self.result.stderr

    @property
    def json(self) -> Any:
        return json.loads(self.result.stdout)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.result.stdout.splitlines()]

    def complains(self) -> str:
        """The one sentence on standard error of a command that was refused: with 1 where something named is not there, else 2."""
        assert self.code == (1 if _MISSING.search(self.err) else 2), self.result.output
        assert self.out == ""
        assert self.err.startswith("gatewayfilter: "), self.err
        assert self.err.count("\n") == 1, self.err
        assert "Traceback" not in self.err
        return self.err.removeprefix("gatewayfilter: ").rstrip("\n")


@pytest.fixture(autouse=True)
def _programs_of_later_tests_import_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes back that the command line keeps the current folder out of the programs that it starts."""
    monkeypatch.setenv("PYTHONSAFEPATH", "")
    monkeypatch.delenv("PYTHONSAFEPATH")


@pytest.fixture(autouse=True)
def _quick_password_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has commands of this process hash passwords at the least cost; what it is otherwise has tests of its own."""
    monkeypatch.setattr(passwords, "_MEMORY_KIB", 8)
    monkeypatch.setattr(passwords, "_PASSES", 1)
    monkeypatch.setattr(user_file, "_COST", 2)


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder that is not there yet, and an environment without settings."""
    for name in [name for name in os.environ if name.startswith("GATEWAYFILTER_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "gatewayfilter"


@pytest.fixture
def cli(state: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Calls the command line in this process, as a program that the shell finds by its name."""
    del state
    monkeypatch.setattr("gatewayfilter.program_name.program_name", lambda: "gatewayfilter")

    def call(*arguments: object, stdin: str | bytes | None = None) -> Answer:
        result = CliRunner().invoke(main, [str(argument) for argument in arguments], input=stdin)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert "Traceback" not in result.output
        return Answer(result)

    return call


def prepare(cli: Cli, state: Path, made: Path, *commands: Sequence[str]) -> None:
    """Runs the commands that a test begins with, or copies the state folder that they left when they ran first.

    Args:
        cli: to run them.
        state: the state folder, not there yet.
        made: where a copy is kept for the tests of a module: no folder yet when they are to be run.
        commands: each has to succeed.
    """
    if made.exists():
        shutil.copytree(made, state)
        return
    for arguments in commands:
        assert cli(*arguments).code == 0
    shutil.copytree(state, made)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where `prepare` keeps its copy."""
    return tmp_path_factory.mktemp("made") / "state"

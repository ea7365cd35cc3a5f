import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from gatewayfilter import __version__
from gatewayfilter.cli import root
from gatewayfilter.cli.root import COMMANDS, main
from gatewayfilter.cli.ui.command import FilterCommand, FilterGroup
from tests.case_tables import all_cases

type Cli = Callable[..., Any]

HEAVY = ("mitmproxy", "aiohttp", "alembic", "sqlalchemy", "numpy", "pydantic", "rich", "cryptography")


def every_command(group: click.Group = main, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], click.Command]]:
    """Every command below the root, groups included, with its path."""
    found: list[tuple[tuple[str, ...], click.Command]] = []
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        assert command is not None
        found.append(((*path, name), command))
        if isinstance(command, click.Group):
            found += every_command(command, (*path, name))
    return found


EVERY_COMMAND = every_command()


@all_cases(("path", "command"), EVERY_COMMAND)
def test_every_command_has_help_with_an_example(path: tuple[str, ...], command: click.Command, cli: Cli) -> None:
    answer = cli(*path, "--help")
    assert answer.code == 0
    assert isinstance(command, FilterCommand | FilterGroup)
    assert command.help
    assert "Example" in answer.out
    assert "--data-dir" in answer.out
    for example in command.examples:
        assert "gatewayfilter " + " ".join(path[:1]) in example
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{parameter.opts} needs a help text"


@all_cases("name", COMMANDS)
def test_the_table_of_commands_says_what_the_commands_say(name: str) -> None:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    assert command.name == name
    assert command.get_short_help_str(200) == COMMANDS[name].summary


def test_the_root_help_names_every_command_and_imports_none(state: Path) -> None:
    del state
    code = (
        "import sys\nsys.argv = ['gatewayfilter', '--help']\nfrom gatewayfilter.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.rstrip().endswith("[]")
    for name in COMMANDS:
        assert f"\n  {name} " in done.stdout


def test_the_version(cli: Cli) -> None:
    assert cli("--version").out == f"gatewayfilter {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["chek"], "no such command 'chek'; did you mean 'check'? (see 'gatewayfilter --help')"),
        (["list", "ad"], "no such command 'ad'; did you mean 'add'? (see 'gatewayfilter list --help')"),
        (["db", "x"], "no such command 'x'; there are status, upgrade, check, repair, rollback (see 'gatewayfilter db --help')"),
        (["check"], "missing argument 'URL' (see 'gatewayfilter check --help')"),
        (["check", "a.test", "--type", "hologram"], "'hologram' is none of document"),
        (["check", "http://a b/"], "not a URL: 'http://a b/'"),
        (["check", "ftp://a.test/"], "not an http(s) URL: 'ftp://a.test/'"),
        (["check", "a.test", "--at", "soon"], "'soon' is no time"),
        (["--workers", "2", "run"], "no such option"),
        (["run", "--listen", "nowhere"], "setting 'proxy.listen' (option): must be HOST:PORT, not 'nowhere'"),
        (["run", "--mode", "sideways"], "setting 'proxy.mode' (option): must be regular"),
        (["run", "--workers", "-1"], "setting 'proxy.workers' (option)"),
        (["review", "show", "abc"], "invalid value for 'TASK': 'abc' is no whole number (see"),
        (["list", "add"], "missing argument 'PATTERN...'"),
        (["list", "add", "a b"], "'a b' is no URL, host, wildcard or /regex/"),
        (["list", "add", "com"], "'com' is a whole top-level domain or public suffix; add it with --force if you mean it"),
        (["list", "add", "a.test", "--expires", "2001-01-01"], "is in the past"),
        (["list", "import", "not-there.txt"], "cannot read not-there.txt: No such file or directory"),
        (["match", "--requests", "not-there.jsonl"], "cannot read not-there.jsonl: No such file or directory"),
        (["log", "purge", "--before", "30x"], "invalid value for '--before': '30x' is no time"),
        (["queue", "show", "--state", "odd"], "invalid value for '--state'"),
        (["config", "show", "prox"], "there is no setting 'prox'; did you mean 'proxy'?"),
        (["config", "check", "not-there.toml"], "cannot read the configuration not-there.toml: No such file or directory"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_gets_one_sentence_and_touches_nothing(arguments: list[str], sentence: str, cli: Cli, state: Path) -> None:
    assert sentence in cli(*arguments).complains()
    assert not state.exists()


def test_complaints_and_findings_name_the_program_as_it_is_called_here(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewayfilter.program_name.program_name", lambda: ".venv/bin/gatewayfilter")
    assert "(see '.venv/bin/gatewayfilter --help')" in cli("chek").complains()
    assert "requests wait in .venv/bin/gatewayfilter request list." in cli("doctor").out


def test_a_bare_group_shows_its_help(cli: Cli) -> None:
    answer = cli("list")
    assert answer.code == 2
    assert "Commands:" in answer.err


@pytest.mark.parametrize("before", [True, False])
def test_common_options_stand_before_or_after_the_command(before: bool, cli: Cli, tmp_path: Path) -> None:  # noqa: FBT001  a column of the table
    file = tmp_path / "mine.toml"
    file.write_text("[proxy]\nworkers = 3\n")
    common = ["--config", str(file), "--data-dir", str(tmp_path / "s"), "--json"]
    answer = cli(*common, "config", "show", "proxy.workers") if before else cli("config", "show", "proxy.workers", *common)
    assert answer.json == {"proxy.workers": {"value": 3, "origin": f"file {file}"}}


def test_the_option_nearest_to_the_command_wins(cli: Cli) -> None:
    answer = cli("--data-dir", "/a", "config", "--data-dir", "/b", "show", "data_dir", "--data-dir", "/c", "--json")
    assert answer.json["data_dir"]["value"] == "/c"


@pytest.mark.parametrize(("level", "traced"), [("debug", True), ("info", False)])
def test_a_fault_of_the_program_is_a_sentence_and_code_3(
    level: str,
    traced: bool,  # noqa: FBT001  a column of the table
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail() -> None:
        raise KeyError("lost\nkey")

    monkeypatch.setenv("GATEWAYFILTER_LOG__LEVEL", level)
    assert root.run_to_exit_code(fail) == root.FAULT
    err = capsys.readouterr().err
    assert "gatewayfilter: a fault of the program, KeyError:" in err
    assert ("Traceback" in err) is traced


def test_ctrl_c_is_130() -> None:
    def fail() -> None:
        raise click.Abort

    assert root.run_to_exit_code(fail) == root.INTERRUPTED


def test_a_reader_that_goes_away_is_no_error() -> None:
    command = f"{sys.executable} -m gatewayfilter.cli config schema | head -c 1; echo; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] in {"0", "141"}


def test_shell_completion_offers_commands() -> None:
    environment = {"_GATEWAYFILTER_COMPLETE": "bash_complete", "COMP_WORDS": "gatewayfilter que", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "gatewayfilter.cli"], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout == "plain,queue\n"


@pytest.mark.slow
@pytest.mark.parametrize(("given", "threads"), [({}, 1), ({"OPENBLAS_NUM_THREADS": "2"}, min(2, os.cpu_count() or 1))])
def test_a_command_calculates_in_one_thread_unless_told_otherwise(given: dict[str, str], threads: int) -> None:
    code = (
        "from pathlib import Path\nfrom gatewayfilter.cli import main\n"
        "try:\n    main(['--version'])\nexcept SystemExit:\n    pass\n"
        "import numpy\nprint(len(list(Path('/proc/self/task').iterdir())))"
    )
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"} | given
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert int(done.stdout.splitlines()[-1]) == threads


@pytest.mark.slow
def test_nothing_is_imported_from_the_current_folder(tmp_path: Path) -> None:
    folder, ran = tmp_path / "current", tmp_path / "ran"
    ran.mkdir()
    for package in ("gatewayfilter", "multiprocessing", "mitmproxy"):
        (folder / package).mkdir(parents=True)
        (folder / package / "__init__.py").write_text(f"open({str(ran / package)!r}, 'w').close()\n")
    command = [str(Path(sys.executable).with_name("gatewayfilter")), "run", "--listen", "127.0.0.1:0", "--workers", "1"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment |= {
        "GATEWAYFILTER_DATA_DIR": str(tmp_path / "state"),
        "GATEWAYFILTER_LEARN__ENABLED": "false",
        "GATEWAYFILTER_WEB__LISTEN": "",
    }
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert "filtering on" in process.stdout.readline()
        process.terminate()
        process.communicate(timeout=60)
    assert list(ran.iterdir()) == []

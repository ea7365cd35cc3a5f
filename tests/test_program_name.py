"""Hints print a command line that works where it is read."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gatewayfilter import program_name
from gatewayfilter.program_name import as_callable


@pytest.fixture(autouse=True)
def _nothing_remembered() -> Iterator[None]:
    for found in (program_name.program_name, program_name.program_path):
        found.cache_clear()
    yield
    for found in (program_name.program_name, program_name.program_path):
        found.cache_clear()


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "a folder" / ".venv" / "bin" / "gatewayfilter"
    file.parent.mkdir(parents=True)
    file.touch(mode=0o755)
    monkeypatch.setattr(sys, "argv", [str(file), "doctor"])
    return file


def test_on_the_search_path_the_name_is_enough(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(program.parent))
    assert as_callable("gatewayfilter run, or gatewayfilter publish") == "gatewayfilter run, or gatewayfilter publish"


def test_elsewhere_the_path_is_printed(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin")
    monkeypatch.chdir(program.parents[2])
    assert as_callable("gatewayfilter run makes it") == ".venv/bin/gatewayfilter run makes it"
    monkeypatch.chdir("/")
    program_name.program_name.cache_clear()
    assert as_callable("try gatewayfilter run") == f"try '{str(program)[1:]}' run"


def test_root_gets_the_whole_path(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(program.parent))
    assert as_callable("gateway.lan, then sudo gatewayfilter gateway up") == f"gateway.lan, then sudo '{program}' gateway up"


def test_what_is_no_command_stays(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del program
    monkeypatch.setenv("PATH", "/usr/bin")
    for text in (
        "journalctl -u gatewayfilter",
        "systemctl start gatewayfilter",
        "/opt/gatewayfilter run",
        "GatewayFilter is fine",
    ):
        assert as_callable(text) == text


def test_beside_the_interpreter_when_it_was_started_by_another_file(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(program.with_name("python")))
    for called in ("/usr/bin/pytest", "", "gatewayfilter-of-another-name"):
        program_name.program_path.cache_clear()
        monkeypatch.setattr(sys, "argv", [called])
        assert program_name.program_path() == (str(program) if called else "gatewayfilter")
    monkeypatch.setattr(sys, "argv", ["/usr/bin/pytest"])
    program.unlink()
    program_name.program_path.cache_clear()
    assert program_name.program_path() == "gatewayfilter"
    monkeypatch.setenv("PATH", "/usr/bin")
    assert as_callable("sudo gatewayfilter run, gatewayfilter run") == "sudo gatewayfilter run, gatewayfilter run"


def test_in_its_own_folder_a_shell_finds_it(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(program.parent)
    monkeypatch.setenv("PATH", "/usr/bin")
    monkeypatch.setattr(sys, "argv", ["gatewayfilter"])
    assert program_name.program_path() == str(program)
    assert as_callable("try gatewayfilter run") == "try ./gatewayfilter run"


def test_a_link_on_the_search_path_is_this_program_and_another_file_is_not(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = program.parents[1] / "gatewayfilter"
    monkeypatch.setenv("PATH", str(found.parent))
    monkeypatch.chdir(found.parent)
    found.symlink_to(program)
    assert program_name.program_name() == "gatewayfilter"
    found.unlink()
    found.touch(mode=0o755)
    program_name.program_name.cache_clear()
    assert program_name.program_name() == "bin/gatewayfilter"


def test_outside_the_current_folder_the_whole_path_is_printed(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin")
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    assert program_name.program_name() == f"'{program}'"
    (tmp_path / "gone").rmdir()
    program_name.program_name.cache_clear()
    assert program_name.program_name() == f"'{program}'"

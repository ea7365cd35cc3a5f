import ast
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

from gatewayfilter.cli.ui.output import counted, hint, plain, print_json, print_json_line, print_table, printable, say
from gatewayfilter.model import Action
from gatewayfilter.urls import parse_url
from tests.case_tables import all_cases
from tests.structure.source_tree import PACKAGE, modules, text_of

COMMAND = re.compile(r"\bgatewayfilter [a-z-]")
SAYS = re.compile(r"\b(?:say|echo|secho)\(")


@dataclass(frozen=True)
class _Thing:
    digest: bytes
    names: tuple[str, ...]
    where: Path


@all_cases(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("例子 é", "例子 é"),
        ("\x1b[2Jgone", "\ufffd[2Jgone"),
        ("a\u202eb", "a\ufffdb"),
        ("a\nb", "a\ufffdb"),
        ("\udc80", "\ufffd"),
        ("\u06cc\u200c\u062e", "\u06cc\u200c\u062e"),
    ],
)
def test_nothing_steers_the_terminal(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_lines_stay_lines(capsys: pytest.CaptureFixture[str]) -> None:
    say("one\n\x1b[31mtwo")
    assert capsys.readouterr().out == "one\n\ufffd[31mtwo\n"


def test_a_table_off_a_terminal_has_one_unbroken_line_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("id", "what"), [(1, "x" * 300), (22, None), (3, "[red]no markup[/red]")])
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["id  what", f"1   {'x' * 300}", "22", "3   [red]no markup[/red]"]


def test_a_table_on_a_terminal_is_fitted(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "xterm")
    print_table(("url", "what"), [("http://[::1]/" + "x" * 100, "[red]no markup[/red]")])
    out = capsys.readouterr().out
    assert "[::1]" in out
    assert "[red]" in out
    assert max(len(line) for line in click.unstyle(out).splitlines()) <= 40


def test_values_become_json() -> None:
    thing = _Thing(b"\x01\xff", ("a", "b"), Path("/x"))
    shown = plain(
        {"thing": thing, "url": parse_url("http://a.test/"), "action": Action.ALLOW, "none": None, "set": {2, 1}, "n": 1.5}
    )
    assert json.loads(json.dumps(shown)) == {
        "thing": {"digest": "01ff", "names": ["a", "b"], "where": "/x"},
        "url": "http://a.test/",
        "action": "allow",
        "none": None,
        "set": [1, 2],
        "n": 1.5,
    }


@pytest.mark.parametrize("printer", [print_json, print_json_line])
def test_json_does_not_steer_the_terminal_either(printer: Callable[[object], None], capsys: pytest.CaptureFixture[str]) -> None:
    value = {"title": "\x9b2J \x1b[2J \x7f \u202egnp \u2028 \U000e0041 \ud800 赌博 \u200d é \\u009b"}
    printer(value)
    shown = capsys.readouterr().out
    assert json.loads(shown) == value
    assert "赌博" in shown
    assert printable(shown.replace("\n", "")) == shown.replace("\n", "")


def test_counts_agree_with_their_nouns() -> None:
    assert [counted(n, "entry", "entries") for n in (0, 1, 2000)] == ["0 entries", "1 entry", "2,000 entries"]
    assert counted(2, "URL") == "2 URLs"


def test_a_hint_names_the_program_as_it_has_to_be_typed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gatewayfilter.program_name.program_name", lambda: ".venv/bin/gatewayfilter")
    hint("Start it: gatewayfilter run")
    hint("\x1b Look: gatewayfilter status", err=True)
    assert tuple(capsys.readouterr()) == (
        "Start it: .venv/bin/gatewayfilter run\n",
        "\ufffd Look: .venv/bin/gatewayfilter status\n",
    )


def _lines_that_name_a_command(source: str) -> list[int]:
    """Lines of calls that print the name of the program, with a command, as it stands in the code."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call) and SAYS.match(f"{_name(node.func)}("))
    texts = ((call.lineno, part.value) for call in calls for part in ast.walk(call) if isinstance(part, ast.Constant))
    return [line for line, text in texts if isinstance(text, str) and COMMAND.search(text)]


def _name(called: ast.expr) -> str:
    return called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")


def test_commands_are_named_by_hints_alone() -> None:
    assert _lines_that_name_a_command(
        "if x:\n    say(\n f'{n} are left: gatewayfilter list all', err=True)\nhint('gatewayfilter run')"
    ) == [2]
    assert not _lines_that_name_a_command("say(f'gatewayfilter: {why}')\nsay('the gatewayfilter')")
    sources = {path: text_of(path) for path in modules() if PACKAGE / "cli" in path.parents}
    printing = {path: source for path, source in sources.items() if COMMAND.search(source) and SAYS.search(source)}
    assert printing
    assert {path.name: lines for path, source in printing.items() if (lines := _lines_that_name_a_command(source))} == {}

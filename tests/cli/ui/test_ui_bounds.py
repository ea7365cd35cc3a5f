"""What commands share, at its bounds: `gatewayfilter.cli.ui.output`, `gatewayfilter.cli.ui.progress`,
`gatewayfilter.cli.ui.dates`, `gatewayfilter.cli.ui.passwords`, `gatewayfilter.cli.ui.actor`, `gatewayfilter.cli.ui.page_files`,
`gatewayfilter.cli.ui.command_context`, `gatewayfilter.cli.ui.command`, `gatewayfilter.cli.root`.
"""

from __future__ import annotations

import getpass
import io
import os
import re
import sys
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import click
import pytest
from click.testing import CliRunner

from gatewayfilter.cli.root import main, run_to_exit_code
from gatewayfilter.cli.ui import actor, dates, page_files, passwords, progress
from gatewayfilter.cli.ui.command import FilterCommand, FilterGroup
from gatewayfilter.cli.ui.command_context import Invocation, PendingChange, open_store
from gatewayfilter.cli.ui.output import plain, print_json, print_json_line, print_table, say
from gatewayfilter.config import Loaded
from gatewayfilter.errors import AccountError, ClassifyError, MissingError, StoreError
from gatewayfilter.model import Actor, Via
from tests.case_tables import all_cases
from tests.cli.test_command_doubles import MOMENT, SETTINGS, Doubled, called, texts


def fitted(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: int, columns: Any, rows: Any) -> list[str]:
    """Returns the lines of a table on a terminal of this width."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    print_table(columns, rows)
    return [line.rstrip() for line in click.unstyle(capsys.readouterr().out).splitlines()]


def test_a_table_that_fits_has_its_columns(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    lines = fitted(monkeypatch, capsys, 20, ("id", "what"), [("1", "x" * 15), ("2", None)])
    assert [line.split() for line in lines if set(line) - set("─ ")] == [["id", "what"], ["1", "x" * 15], ["2"]]
    lines = fitted(monkeypatch, capsys, 30, ("id", "what"), [("1", "y" * 40)])
    assert [len(line) for line in lines if "y" in line] == [30, 20], "a long cell is folded beside the first"


def test_columns_that_are_empty_make_room(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    lines = fitted(monkeypatch, capsys, 27, ("id", "nothing", "what"), [("1", "", "y" * 22)])
    assert ["id", "what"] in [line.split() for line in lines]
    lines = fitted(monkeypatch, capsys, 40, ("id", "nothing", "what"), [("1", "", "y" * 22)])
    assert ["id", "nothing", "what"] in [line.split() for line in lines]


def test_a_table_that_does_not_fit_is_records(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    columns = ("name", "one", "two", "three", "four")
    lines = fitted(monkeypatch, capsys, 24, columns, [("n" * 30, "a" * 6, "", "b" * 5, "c" * 40), ("m", "", "", "", "")])
    assert lines == ["n" * 24, "n" * 6, "  one: aaaaaa", f"  three: {'b' * 5}", f"  four: {'c' * 16}", "c" * 24, "m"]
    lines = fitted(monkeypatch, capsys, 26, columns, [("n", "a" * 3, "b" * 3, "c", "d" * 30)])
    assert lines[:3] == ["n", "  one: aaa · two: bbb", "  three: c"]
    lines = fitted(monkeypatch, capsys, 21, columns, [("n", "a" * 3, "b" * 3, "c", "d" * 30)])
    assert lines[:2] == ["n", "  one: aaa · two: bbb"], "as wide as the terminal"
    lines = fitted(monkeypatch, capsys, 20, columns, [("n", "a" * 3, "b" * 3, "c", "d" * 30)])
    assert lines[:3] == ["n", "  one: aaa", "  two: bbb"]


def test_lines_and_json_are_whole(capsys: pytest.CaptureFixture[str]) -> None:
    say()
    say("a", err=True)
    print_json({"b": [1, None, True], "é": "\x7f"})
    print_json_line([{"a": 1}, "b"])
    out, err = capsys.readouterr()
    assert (out, err) == ('\n{\n  "b": [\n    1,\n    null,\n    true\n  ],\n  "é": "\\u007f"\n}\n[{"a":1},"b"]\n', "a\n")
    assert plain({1: frozenset({"b", "a"}), "t": (Path("/x"),), "k": SimpleNamespace}) == {
        "1": ["a", "b"],
        "t": ["/x"],
        "k": str(SimpleNamespace),
    }


def test_progress_is_a_line_a_step(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with progress.showing() as report:
        for step, done, total in (("read", 0, 0), ("read", 5, 9), ("write", 9, 9), ("write", 8, 9), ("end", 0, 0)):
            report(step, done, total)
    assert capsys.readouterr() == ("", "read\nwrite\nend\n")
    with progress.showing(quiet=True) as report:
        report("read", 0, 0)
    now = [0.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now[0]))
    with progress.showing(patience_s=2.0) as report:
        report("early", 0, 0)
        now[0] = 2.0
        report("late", 0, 0)
    assert capsys.readouterr() == ("", "late\n")


def test_progress_on_a_terminal_is_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    updates: list[Any] = []

    class Bars:
        def __init__(self, *columns: object, console: object, transient: bool) -> None:
            assert (len(columns), console is not None, transient) == (4, True, True)

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None: ...

        def add_task(self, name: str, *, total: None, visible: bool) -> int:
            updates.append((name, total, visible))
            return 7

        def update(self, task: int, **how: object) -> None:
            updates.append((task, how))

    monkeypatch.setattr("rich.progress.Progress", Bars)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with progress.showing() as report:
        report("read\x07", 3, 0)
        report("read", 3, 9)
    shown = {"completed": 3, "visible": True}
    assert updates == [
        ("", None, False),
        (7, {"description": "read\ufffd", "total": None, **shown}),
        (7, {"description": "read", "total": 9, **shown}),
    ]


def test_moments_are_shown_in_the_zone_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: MOMENT)
    asked: list[object] = []
    tokyo = SETTINGS.model_copy(update={"filter": SETTINGS.filter.model_copy(update={"timezone": "Asia/Tokyo"})})

    @click.command()
    @click.pass_obj
    def show(invocation: Doubled) -> None:
        for _ in range(2):
            click.echo(f"{dates.show_moment(MOMENT)} {dates.show_day(MOMENT)} {dates.read_moment('2023-11-15 07:13')}")
        asked.append(len(invocation.options))

    line = f"2023-11-15 07:13:20 2023-11-15 07:13 {MOMENT - 20}\n"
    assert CliRunner().invoke(show, obj=Doubled(settings=tokyo)).stdout == line * 2
    assert asked == [1], "the settings are read once"
    assert (dates.show_moment(None), dates.show_day(None)) == ("never", "")
    assert dates.local_time(MOMENT).astimezone(UTC) == datetime.fromtimestamp(MOMENT, UTC)
    option: Any = None
    assert dates.past_option(option, option, "1h") == MOMENT - 3_600
    assert dates.moment_option(option, option, "1h") == MOMENT + 3_600
    assert (dates.past_option(option, option, None), dates.moment_option(option, option, None)) == (None, None)
    assert dates.expiry_option(option, option, "1h") == MOMENT + 3_600
    assert dates.expiry_option(option, option, None) is None
    with pytest.raises(click.BadParameter, match="is in the past"):
        dates.expiry_option(option, option, "2023-11-14T22:13:20+00:00")
    with pytest.raises(click.BadParameter):
        dates.read_moment("zz")


def test_a_password_is_read_from_a_line_or_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    good = "correct horse battery staple"
    asked: list[Any] = []

    def prompt(text: str, **how: object) -> str:
        asked.append((text, how))
        return good

    monkeypatch.setattr(click, "prompt", prompt)
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{good}\r\nmore"))
    assert passwords.read_new_password("kim", from_stdin=True) == good
    with pytest.raises(AccountError, match="there is no terminal to ask for a password at"):
        passwords.read_new_password("kim", from_stdin=False)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))
    assert passwords.read_new_password("kim", from_stdin=False) == good
    assert asked == [("New password of kim", {"hide_input": True, "confirmation_prompt": True})]
    monkeypatch.setattr(sys, "stdin", io.StringIO("x\n"))
    with pytest.raises(AccountError):
        passwords.read_new_password("kim", from_stdin=True)


def test_who_runs_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded: list[Any] = []
    trail = SimpleNamespace(record=lambda *given: recorded.append(given))
    monkeypatch.setattr("gatewayfilter.use_cases.access.audit_trail.AuditTrail", lambda _store: trail)
    monkeypatch.setenv("SUDO_USER", "kim")
    assert (actor.user_name(), actor.command_actor()) == ("kim", Actor("kim", Via.COMMAND))
    store: Any = "store"
    actor.record(store, "a.b", 7, "d", {"kind": "x"})
    assert recorded == [(Actor("kim", Via.COMMAND), "a.b", "7", "d", {"kind": "x"})]
    monkeypatch.setenv("SUDO_USER", "")
    monkeypatch.setattr(getpass, "getuser", lambda: "lee")
    assert actor.user_name() == "lee"

    def nobody() -> str:
        raise KeyError("uid")

    monkeypatch.setattr(getpass, "getuser", nobody)
    assert actor.user_name() == f"user {os.getuid()}"


def test_pages_are_known_by_their_beginning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for content, kind in (
        (b"%PDF-1.7", "application/pdf"),
        (b"text <P>", "text/html"),
        (b"<!-- x", "text/plain"),
        (b"<h2>", "text/html"),
        (b"<px>", "text/plain"),
        (b" " * 4_092 + b"<p>", "text/html"),
        (b" " * 4_095 + b"<p>", "text/plain"),
    ):
        page = page_files.page_of(content)
        assert (page.headers["content-type"], page.status, page.body) == (kind, 200, content)
    monkeypatch.setattr(page_files, "MAX_FILE", 3)
    file = tmp_path / "page"
    file.write_bytes(b"12345")
    assert page_files.read_bytes(str(file)) == b"123"
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"12345")))
    assert page_files.read_bytes("-") == b"123"
    with pytest.raises(ClassifyError, match="cannot read /dev/null/none: Not a directory"):
        page_files.read_bytes("/dev/null/none")


def test_settings_are_loaded_with_the_options_and_warned_of_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[Any] = []
    warned: list[Loaded] = []
    loaded = Loaded(SETTINGS, {}, ("old is new", "b is c"))

    def load(**given: object) -> Loaded:
        asked.append(given)
        return loaded

    monkeypatch.setattr("gatewayfilter.config.load", load)
    context = Invocation(Path("~/state"), Path("/c"))
    assert context.loaded(proxy__listen="h:1") is loaded
    assert capsys.readouterr().err == "gatewayfilter: old is new; b is c\n"
    assert context.settings() is SETTINGS
    assert capsys.readouterr().err == ""
    state = Path("~/state").expanduser()
    assert asked == [
        {"file": Path("/c"), "options": {"data_dir": state, "proxy.listen": "h:1"}},
        {"file": Path("/c"), "options": {"data_dir": state}},
    ]
    assert Invocation().loaded(warned.append) is loaded
    assert (warned, asked[-1], capsys.readouterr().err) == ([loaded], {"file": None, "options": {"data_dir": None}}, "")


def test_a_store_is_closed_and_its_changes_are_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    steps: list[Any] = []
    opened: Any = SimpleNamespace(close=lambda: steps.append("close"))
    refused: list[Path] = []

    class Trail:
        def __init__(self, store: object) -> None:
            assert store is opened

        @contextmanager
        def changing(self, *given: object) -> Any:
            steps.append(given)
            yield
            steps.append("changed")

        def record(self, *given: object) -> None:
            steps.append(given)

    def open_(settings: object, *, before_upgrade: Any) -> Any:
        before_upgrade()
        steps.append(settings)
        return opened

    monkeypatch.setattr("gatewayfilter.use_cases.access.audit_trail.AuditTrail", Trail)
    monkeypatch.setattr("gatewayfilter.wiring.open_store", open_)
    monkeypatch.setattr("gatewayfilter.processes.supervision.run_lock.refuse_while_running", refused.append)
    monkeypatch.setattr("gatewayfilter.cli.ui.actor.user_name", lambda: "kim")
    settings = SETTINGS.model_copy(update={"data_dir": tmp_path})
    monkeypatch.setattr("gatewayfilter.config.load", lambda **_: Loaded(settings, {}))
    context, kim = Invocation(), Actor("kim", Via.COMMAND)
    with context.store() as store:
        assert store is opened
    assert (steps, refused) == ([settings, "close"], [tmp_path])
    steps.clear()
    context.change = PendingChange("rule.added", "a", "--x")
    with context.store():
        steps.append("work")
    assert steps == [settings, (kim, "rule.added", "a", "--x"), "work", "changed", "close"]
    steps.clear()
    context.record(PendingChange("a.b", "s", "d", {"kind": "x"}))
    assert steps == [], "there is no database yet"
    (tmp_path / "gatewayfilter.sqlite3").touch()
    context.record(PendingChange("a.b", "s", "d", {"kind": "x"}))
    assert steps == [settings, (kim, "a.b", "s", "d", {"kind": "x"}), "close"]
    assert open_store(settings) is opened
    (tmp_path / "gatewayfilter.sqlite3").unlink()
    other = settings.model_copy(update={"store": settings.store.model_copy(update={"url": "postgresql://x"})})
    monkeypatch.setattr("gatewayfilter.config.load", lambda **_: Loaded(other, {}))
    steps.clear()
    context.record(PendingChange("a.b", "s", "d"))
    assert steps[0] is other


@all_cases(
    ("arguments", "code", "changed", "undo", "recorded"),
    [
        (["one", "two", "--flag", "--name", "n"], None, False, None, [PendingChange("x.done", "one two", "--name n --flag")]),
        (["one"], 1, False, None, []),
        (["one"], 1, True, None, [PendingChange("x.done", "one", "")]),
        (["one"], 1, False, {"kind": "x"}, [PendingChange("x.done", "one", "", {"kind": "x"})]),
        (["one", "--json"], 0, False, None, [PendingChange("x.done", "one", "")]),
        (["one", "--dry-run"], 0, False, None, []),
        (["one", "--preview"], 0, False, None, []),
    ],
)
def test_what_is_recorded_of_a_command(
    *, arguments: list[str], code: int | None, changed: bool, undo: Any, recorded: list[Any]
) -> None:
    context = Doubled()

    def work(**_: object) -> int | None:
        context.changed, context.undo = changed, undo
        return code

    flags = [click.Option([f"--{name}"], is_flag=True) for name in ("flag", "dry-run", "preview")]
    command = FilterCommand(
        "x",
        callback=work,
        params=[click.Argument(["words"], nargs=-1), click.Option(["--name"]), *flags],
        recorded="x.done",
        prints_data=True,
    )
    assert command.main(arguments, standalone_mode=False, obj=context) == code
    assert context.recorded == recorded
    assert context.change is None
    command.audited, command.recorded = "x.audited", ""
    context = Doubled()
    command.main(arguments, standalone_mode=False, obj=context)
    found = context.change
    assert (found is None) if {"--dry-run", "--preview"} & set(arguments) else (found is not None and found.action == "x.audited")
    assert context.recorded == []


def test_help_lists_commands_by_section_and_examples() -> None:
    out = texts(Doubled(), "--help")[1]
    headings = re.findall(r"^(\w+):$", out, re.MULTILINE)
    assert headings == ["Options", "Filter", "Lists", "Clients", "Learn", "Operate", "Examples"]
    assert "  gatewayfilter check https://example.com/\n" in out
    assert "Shell completion: eval" in out
    out = texts(Doubled(), "fleet", "--help")[1]
    assert re.findall(r"^(\w+):$", out, re.MULTILINE) == ["Options", "Commands", "Example"]
    assert re.search(r"^  gateways +Show the gateways", out, re.MULTILINE)
    assert "--json" in out
    out = texts(Doubled(), "metrics", "--help")[1]
    assert re.findall(r"^(\w+):$", out, re.MULTILINE) == ["Options", "Examples"]
    assert "--json" not in out
    bare = FilterGroup("g")
    assert "Example" not in CliRunner().invoke(bare, ["--help"]).output
    assert called(Doubled(), "pass-through", "--help").code == 0, "the name of an earlier release"


def test_each_end_has_its_code(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(error: BaseException) -> Any:
        def command() -> None:
            raise error

        return command

    context = click.Context(main, info_name="gatewayfilter")
    monkeypatch.setattr("gatewayfilter.program_name.program_name", lambda: "gatewayfilter")
    monkeypatch.delenv("GATEWAYFILTER_LOG__LEVEL", raising=False)
    assert [run_to_exit_code(lambda value=value: value) for value in (7, None, "x", 0)] == [7, 0, 0, 0]  # type: ignore[misc]
    for error, code, told in (
        (click.UsageError("It is wrong.", context), 2, "it is wrong (see 'gatewayfilter --help')"),
        (click.ClickException("'x' is not a valid integer range."), 2, "'x' is no whole number"),
        (MissingError("there is\nnone"), 1, "there is none"),
        (StoreError("it is locked"), 2, "it is locked"),
        (ValueError(), 3, "a fault of the program, ValueError; GATEWAYFILTER_LOG__LEVEL=debug shows where"),
    ):
        assert run_to_exit_code(fail(error)) == code
        assert capsys.readouterr() == ("", f"gatewayfilter: {told}\n")
    assert run_to_exit_code(fail(click.Abort())) == 130
    monkeypatch.setenv("GATEWAYFILTER_LOG__LEVEL", "Debug")
    assert run_to_exit_code(fail(ValueError("no"))) == 3
    assert "Traceback" in capsys.readouterr().err

"""docs/commands.md against the commands: every command has its section, every argument and option its row, word for word."""

import re
from pathlib import Path

import click

from gatewayfilter.cli.root import main
from gatewayfilter.cli.ui.command import COMMON_OPTIONS, FilterCommand, FilterGroup
from tests.case_tables import all_cases

DOCS = Path(__file__).parents[2] / "docs"
ENGLISH = (DOCS / "commands.md").read_text(encoding="utf-8")
CHINESE = (DOCS / "zh" / "commands.md").read_text(encoding="utf-8")
HEADING = re.compile(r"^#{2,3} `(gatewayfilter [a-z -]+)`$", re.MULTILINE)


def _leaves(group: click.Group, path: str) -> dict[str, click.Command]:
    found: dict[str, click.Command] = {}
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        assert command is not None
        found |= _leaves(command, f"{path} {name}") if isinstance(command, click.Group) else {f"{path} {name}": command}
    return found


LEAVES = _leaves(main, "gatewayfilter")


def _sections(text: str) -> dict[str, str]:
    places = [*HEADING.finditer(text)]
    ends = [place.start() for place in places[1:]] + [len(text)]
    return {place[1]: text[place.end() : end] for place, end in zip(places, ends, strict=True)}


def option_row(option: click.Option) -> str:
    """An option as the page shows it."""
    names = ", ".join(f"`{name}`" for name in [*option.opts, *option.secondary_opts])
    value = "" if option.is_flag else f" `{option.make_metavar(click.Context(main))}`"
    default = f" ({option.default})" if option.show_default else ""
    return f"| {names}{value} | {option.help}{default} |"


def options_of(command: click.Command) -> list[click.Option]:
    """The options that this command has and others have not."""
    return [option for option in command.params if isinstance(option, click.Option) and option.name not in COMMON_OPTIONS]


@all_cases("path", LEAVES)
def test_every_command_has_its_section(path: str) -> None:
    section = _sections(ENGLISH)[path]
    command = LEAVES[path]
    assert isinstance(command, FilterCommand)
    arguments = [parameter for parameter in command.params if isinstance(parameter, click.Argument)]
    for argument in arguments:
        assert argument.make_metavar(click.Context(main)).strip("[].") in section
    for option in options_of(command):
        assert option_row(option) in section.splitlines()
    assert all(example in section for example in command.examples)
    prints_data = any(parameter.name == "json" for parameter in command.params)
    assert ("`--json`" in section) is prints_data


def test_no_section_is_about_a_command_that_is_gone() -> None:
    groups = {f"gatewayfilter {name}" for name in main.list_commands(click.Context(main))}
    assert set(_sections(ENGLISH)) <= set(LEAVES) | groups


@all_cases("path", LEAVES)
def test_no_row_is_about_an_option_that_is_gone(path: str) -> None:
    rows = [line for line in _sections(ENGLISH)[path].splitlines() if line.startswith("| `-")]
    assert rows == [option_row(option) for option in options_of(LEAVES[path])]


@all_cases("path", LEAVES)
def test_the_chinese_page_names_every_command(path: str) -> None:
    assert f"`{path}" in CHINESE


def test_common_options_are_explained_once() -> None:
    for option in FilterGroup(name="x").params:
        if isinstance(option, click.Option):
            assert option_row(option) in ENGLISH.splitlines()

"""The command and group classes of this program: common options everywhere, examples in the help, late import."""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import click

from gatewayfilter.cli.ui.command_context import Invocation, PendingChange

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


COMMON_OPTIONS = frozenset({"data_dir", "config", "json"})
"""Names of the parameters that every command, or every one that prints data, has."""


def _remember(context: click.Context, parameter: click.Parameter, value: object) -> None:
    invocation = context.ensure_object(Invocation)
    if value:
        setattr(invocation, str(parameter.name), value)


def _common_options(*, prints_data: bool) -> list[click.Parameter]:
    options: list[click.Parameter] = [
        click.Option(
            ["--data-dir"],
            type=click.Path(path_type=Path, file_okay=False),
            metavar="FOLDER",
            callback=_remember,
            expose_value=False,
            help="State folder, in place of the setting data_dir.",
        ),
        click.Option(
            ["--config"],
            type=click.Path(path_type=Path, dir_okay=False),
            metavar="FILE",
            callback=_remember,
            expose_value=False,
            help="TOML file with settings, in place of config.toml in the state folder.",
        ),
    ]
    if prints_data:
        options.append(
            click.Option(["--json"], is_flag=True, callback=_remember, expose_value=False, help="Print JSON for programs."),
        )
    return options


class FilterCommand(click.Command):
    """A command with the common options and examples.

    Args:
        examples: command lines for the end of the help, without a prompt.
        prints_data: whether `--json` makes sense.
        audited: action code by which its changes of lists and policies are recorded in the audit log, with their inverse;
            `""` for a command that changes none, or records them itself.
        recorded: action code by which it is recorded otherwise, when it has ended with exit code 0, or has set
            `Invocation.changed` or `Invocation.undo`.
    """

    def __init__(
        self,
        *args: Any,
        examples: Sequence[str] = (),
        prints_data: bool = False,
        audited: str = "",
        recorded: str = "",
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.examples = tuple(examples)
        self.audited = audited
        self.recorded = recorded
        self.params.extend(_common_options(prints_data=prints_data))

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command, and sees to it that its changes are recorded."""
        action = self.audited or self.recorded
        if not action or ctx.params.get("dry_run") or ctx.params.get("preview"):
            return super().invoke(ctx)
        invocation = ctx.ensure_object(Invocation)
        change = PendingChange(action, _typed(self, ctx, click.Argument), _typed(self, ctx, click.Option))
        if self.audited:
            invocation.change = change
        result = super().invoke(ctx)
        if self.recorded and (not result or invocation.changed or invocation.undo is not None):
            invocation.record(replace(change, undo=invocation.undo))
        return result

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the examples."""
        _write_examples(formatter, self.examples)
        super().format_epilog(ctx, formatter)


def _typed(command: click.Command, ctx: click.Context, kind: type[click.Parameter]) -> str:
    """Returns the arguments, or the options, as they were typed."""
    words: list[str] = []
    for parameter in command.params:
        name = str(parameter.name)
        source = ctx.get_parameter_source(name)
        if type(parameter) is not kind or source is not click.core.ParameterSource.COMMANDLINE or name in COMMON_OPTIONS:
            continue
        value = ctx.params.get(name)
        values = [str(part) for part in value] if isinstance(value, tuple) else [str(value)]
        if kind is click.Option:
            is_flag = isinstance(parameter, click.Option) and parameter.is_flag  # one that fills another parameter has no value
            words.append(parameter.opts[0] if is_flag else f"{parameter.opts[0]} {' '.join(values)}")
        else:
            words += values
    return " ".join(words)


_SHOWN_COMMANDS = 12
"""Up to this many are listed where a name is wrong; of more, the help."""


class LateCommand(NamedTuple):
    """A command that is not imported yet.

    Attributes:
        target: `module:attribute` below `gatewayfilter.cli`.
        summary: its line in the list of commands.
        section: the heading that it stands under.
    """

    target: str
    summary: str
    section: str


class FilterGroup(click.Group):
    """A group with the common options and examples; at the root, of commands that are imported when they are called.

    Args:
        examples: as for `FilterCommand`.
        late: name → command.
        aliases: name of an earlier release → the name in use; accepted, and shown nowhere.
    """

    command_class = FilterCommand

    def __init__(
        self,
        *args: Any,
        examples: Sequence[str] = (),
        late: Mapping[str, LateCommand] | None = None,
        aliases: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.examples = tuple(examples)
        self.late = dict(late or {})
        self.aliases = dict(aliases or {})
        self.params.extend(_common_options(prints_data=True))

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Returns the names in the order of their definition, which is the order of the help."""
        del ctx
        return [*self.late, *self.commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Returns a command, imported now if it must be."""
        if (late := self.late.get(cmd_name)) is not None:
            module, _, attribute = late.target.partition(":")
            return cast("click.Command", getattr(import_module(f"gatewayfilter.cli.{module}"), attribute))
        return super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Finds the command that the arguments name.

        Raises:
            click.UsageError: there is none; names the nearest.
        """
        name = self.aliases.get(args[0], args[0])
        known = self.list_commands(ctx)
        if name not in known and not name.startswith("-") and not ctx.resilient_parsing:
            near = get_close_matches(name, known, n=1)
            few = f"; there are {', '.join(known)}" if len(known) <= _SHOWN_COMMANDS else ""
            hint = f"; did you mean {near[0]!r}?" if near else few
            raise click.UsageError(f"no such command {name!r}{hint}", ctx)
        return super().resolve_command(ctx, [name, *args[1:]])

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the list of commands, by section, without importing any."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for name, late in self.late.items():
            sections.setdefault(late.section, []).append((name, late.summary))
        for section, rows in sections.items():
            with formatter.section(section):
                formatter.write_dl(rows)
        if self.commands:
            with formatter.section("Commands"):
                formatter.write_dl([(name, command.get_short_help_str(100)) for name, command in self.commands.items()])
        del ctx

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the examples."""
        _write_examples(formatter, self.examples)
        super().format_epilog(ctx, formatter)


def _write_examples(formatter: click.HelpFormatter, examples: Sequence[str]) -> None:
    if examples:
        with formatter.section("Examples" if len(examples) > 1 else "Example"):
            for example in examples:
                formatter.write(f"{'':{formatter.current_indent}}{example}\n")

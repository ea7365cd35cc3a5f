"""All commands of the command line, by their path."""

import click


def leaves(command: click.Command, path: str = "") -> dict[str, click.Command]:
    """Returns the commands that are no groups: path without the program's name → command."""
    if not isinstance(command, click.Group):
        return {path: command}
    context = click.Context(command)
    found: dict[str, click.Command] = {}
    for name in command.list_commands(context):
        member = command.get_command(context, name)
        assert member is not None
        found |= leaves(member, f"{path} {name}".strip())
    return found

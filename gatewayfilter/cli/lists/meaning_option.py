"""The options --block, --allow and --splice of commands that add manual rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from gatewayfilter.model import ListAction


def meaning_option(text: str) -> Callable[[Any], Any]:
    """Returns the options --block, --allow and --splice for one parameter, `meaning`; two of them are a usage error.

    Args:
        text: help of --block, the default.
    """
    helps = {
        ListAction.SPLICE: "TLS to these hosts passes unread: for banks, and apps that trust no CA but their own.",
        ListAction.ALLOW: "They allow, and outrank every list.",
        ListAction.BLOCK: text,
    }

    def add(command: Any) -> Any:
        for action, help_text in helps.items():
            command = click.option(
                f"--{action}", f"means_{action}", is_flag=True, expose_value=False, callback=_set_meaning, help=help_text
            )(command)
        return command

    return add


def _set_meaning(context: click.Context, parameter: click.Parameter, given: bool) -> None:  # noqa: FBT001  click's signature
    action = ListAction(str(parameter.name).removeprefix("means_"))
    if not given:
        context.params.setdefault("meaning", ListAction.BLOCK.value)
        return
    chosen = context.params.setdefault("meaning", action.value)
    if chosen != action.value:
        raise click.UsageError(f"--{chosen} and --{action} contradict each other: give one of them")

"""`gatewayfilter config`: the settings in use, their check and their schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.ui.command import FilterGroup
from gatewayfilter.cli.ui.output import counted, print_json, print_table, say

if TYPE_CHECKING:
    from gatewayfilter.cli.ui.command_context import Invocation


@click.group("config", cls=FilterGroup, short_help="The settings.", examples=("gatewayfilter config show",))
def config_group() -> None:
    """The settings: what is in use, where each value comes from, and what there is to set."""


@config_group.command(
    examples=("gatewayfilter config show", "gatewayfilter config show proxy crawl.timeout_s --json"), prints_data=True
)
@click.argument("keys", nargs=-1, metavar="[KEY]...")
@click.pass_obj
def show(invocation: Invocation, *, keys: tuple[str, ...]) -> None:
    """Show each setting, its value and where that came from: default, file, environment or option.

    KEY limits it to a setting or a section. Passwords and other secrets are not shown.
    """
    from gatewayfilter.use_cases.setting_values import shown_settings

    rows = shown_settings(invocation.loaded(), keys)
    if invocation.json:
        print_json({row.key: {"value": row.value, "origin": row.origin} for row in rows})
    else:
        print_table(
            ("setting", "value", "from"), [(row.key, json.dumps(row.value, ensure_ascii=False), row.origin) for row in rows]
        )


@config_group.command(examples=("gatewayfilter config check", "gatewayfilter config check new.toml"), prints_data=True)
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.pass_obj
def check(invocation: Invocation, *, file: Path | None) -> None:
    """Check the settings without starting anything; FILE in place of the file in use.

    Opens the files that they name, too. Exit code 0 when all is good, 2 with the first fault otherwise.
    """
    from gatewayfilter.use_cases.settings_files import check_categories, check_files

    if file is not None:
        invocation.config = file
    loaded = invocation.loaded()
    check_files(loaded.settings)
    check_categories(loaded.settings)
    given = {key: origin for key, origin in loaded.origins.items() if origin != "default"}
    if invocation.json:
        print_json({"ok": True, "given": given})
    else:
        say(f"The settings are good: {counted(len(given), 'value')} given, the others at their defaults.")


@config_group.command(examples=("gatewayfilter config schema > schema.json",), prints_data=True)
def schema() -> None:
    """Print the JSON Schema of the settings, for editors that check TOML files."""
    from gatewayfilter.config import Settings

    print_json({"$schema": "https://json-schema.org/draft/2020-12/schema", **Settings.model_json_schema()})

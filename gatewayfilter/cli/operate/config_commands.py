"""`gatewayfilter config`: the settings in use, their check and their schema."""

from __future__ import annotations

import json
import re
from difflib import get_close_matches
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

import click
from pydantic import SecretStr

from gatewayfilter.cli.ui.command import FilterGroup
from gatewayfilter.cli.ui.output import counted, print_json, print_table, say
from gatewayfilter.errors import ConfigError
from gatewayfilter.settings import Section
from gatewayfilter.settings.renamed import RENAMED_SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gatewayfilter.cli.ui.command_context import Invocation
    from gatewayfilter.config import Settings

_PASSWORD = re.compile(r"(?<=://)([^/@:]*:)[^/@]+(?=@)|([?&](?:ssl)?password=)[^&#]+", re.IGNORECASE)


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
    loaded = invocation.loaded()
    rows = [(key, setting_value(loaded.settings, key), loaded.origins[key]) for key in _chosen(loaded.origins, keys)]
    if invocation.json:
        print_json({key: {"value": value, "origin": origin} for key, value, origin in rows})
    else:
        print_table(
            ("setting", "value", "from"), [(key, json.dumps(value, ensure_ascii=False), origin) for key, value, origin in rows]
        )


def _chosen(known: Iterable[str], wanted: tuple[str, ...]) -> list[str]:
    keys = list(known)
    sections = {key.partition(".")[0] for key in keys}
    wanted = tuple(RENAMED_SETTINGS.get(name, name) for name in wanted)
    for name in wanted:
        if name not in keys and name not in sections:
            near = get_close_matches(name, [*keys, *sections], n=1, cutoff=0.5)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ConfigError(f"there is no setting {name!r}{hint}")
    return [key for key in keys if not wanted or key in wanted or key.partition(".")[0] in wanted]


def setting_value(settings: Settings, key: str) -> object:
    """Returns a setting's value in a type of JSON and TOML, without a password.

    Args:
        settings: the settings.
        key: dotted, as `config.known_keys` gives it.
    """
    value: object = settings
    for name in key.split("."):
        value = getattr(value, name)
    if isinstance(value, tuple):
        return [_without_password(item) if isinstance(item, str) else item for item in value]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, SecretStr):
        return "(set)" if value.get_secret_value() else ""
    if isinstance(value, str):
        return _without_password(value)
    if isinstance(value, dict):
        return {name: item.model_dump(mode="json") if isinstance(item, Section) else item for name, item in value.items()}
    return value


def _without_password(text: str) -> str:
    return _PASSWORD.sub(r"\1\2…", text)


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

"""The text of a settings file on another machine: what belongs to the machine stays as it is there."""

import tomllib
from collections.abc import Mapping
from typing import Any, Final

from gatewayfilter.errors import BackupError

MACHINE_SETTINGS: Final = (
    "data_dir",
    "store.url",
    "cache.url",
    "cache.key_file",
    "queue.url",
    "proxy.auth_file",
    "notify.command",
    "learn.image_classifier",
    "web.oidc.client_secret_file",
)
"""Settings that name places and programs of one machine: a backup does not move an installation to another database or folder,
and a forged one runs no program and sends no file away."""


def values_of(text: str) -> dict[str, object]:
    """Returns the values of `MACHINE_SETTINGS` in a settings file.

    Raises:
        BackupError: it is no TOML.
    """
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BackupError(f"the settings are not valid TOML: {error}") from error
    found = {name: _find(document, name) for name in MACHINE_SETTINGS}
    return {name: value for name, value in found.items() if value is not None}


def with_values(text: str, values: Mapping[str, object]) -> str:
    """Returns the text with these values of `MACHINE_SETTINGS`, and without the others; all else stays, comments included.

    Raises:
        BackupError: the text cannot be changed so.
    """
    if values_of(text) == dict(values):
        return text
    import tomlkit  # noqa: PLC0415  for changes alone
    from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415

    try:
        document: Any = tomlkit.parse(text)
        for name in MACHINE_SETTINGS:
            *sections, key = name.split(".")
            if name not in values and _find(document, name) is None:
                continue
            table = document
            for section in sections:
                table = table.setdefault(section, tomlkit.table())
            if name in values:
                table[key] = values[name]
            else:
                del table[key]
        changed = tomlkit.dumps(document)
    except (TOMLKitError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BackupError("the settings of the backup cannot be fitted to this machine") from error
    if values_of(changed) != dict(values):
        raise BackupError("the settings of the backup cannot be fitted to this machine")
    return changed


def _find(document: Any, name: str) -> object:
    for part in name.split("."):
        if not isinstance(document, dict) or part not in document:
            return None
        document = document[part]
    return document

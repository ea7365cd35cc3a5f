"""Settings with where each value comes from, and the change of one in the operator's file."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from pathlib import Path
from typing import Final

from pydantic import SecretStr

from gatewayfilter.config import ENVIRONMENT_SETTINGS, Loaded, Settings, known_keys, load
from gatewayfilter.errors import ConfigError
from gatewayfilter.settings import Section
from gatewayfilter.settings.renamed import RENAMED_SETTINGS
from gatewayfilter.use_cases.backup.settings_text import MACHINE_SETTINGS
from gatewayfilter.use_cases.settings_writer import write_settings

_PASSWORD: Final = re.compile(r"(?<=://)([^/@:]*:)[^/@]+(?=@)|([?&](?:ssl)?password=)[^&#]+", re.IGNORECASE)
_LONGEST: Final = 4_096
"""Characters of a value that is set."""


@dataclass(frozen=True, slots=True)
class ShownSetting:
    """A setting.

    Attributes:
        key: dotted.
        value: in a type of JSON, without passwords.
        origin: `default`, `file PATH`, `environment NAME` or `option`.
        description: what it does.
        changeable: whether `change_setting` changes it.
    """

    key: str
    value: object
    origin: str
    description: str
    changeable: bool


@dataclass(frozen=True, slots=True)
class ChangedSetting:
    """A setting after a change; processes take it when they are started again.

    Attributes:
        before, after: in a type of JSON, without passwords.
        overruled_by: the origin that wins over the file, `""` for none.
    """

    key: str
    before: object
    after: object
    file: Path
    overruled_by: str


def shown_settings(loaded: Loaded, wanted: Sequence[str] = ()) -> list[ShownSetting]:
    """Returns settings in their order.

    Args:
        loaded: the settings.
        wanted: names of settings and sections; empty for all.

    Raises:
        ConfigError: there is no setting of one of these names; names the nearest.
    """
    about = dict(known_keys())
    return [
        ShownSetting(key, setting_value(loaded.settings, key), loaded.origins[key], about[key], _is_changeable(loaded, key))
        for key in _chosen(loaded.origins, wanted)
    ]


def _chosen(known: Iterable[str], wanted: Sequence[str]) -> list[str]:
    keys = list(known)
    sections = {key.rsplit(".", size)[0] for key in keys for size in range(1, key.count(".") + 1)}
    wanted = tuple(RENAMED_SETTINGS.get(name, name) for name in wanted)
    for name in wanted:
        if name not in keys and name not in sections:
            near = get_close_matches(name, [*keys, *sections], cutoff=0.5)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ConfigError(f"there is no setting {name!r}{hint}")
    return [key for key in keys if not wanted or any(f"{key}.".startswith(f"{name}.") for name in wanted)]


def setting_value(settings: Settings, key: str) -> object:
    """Returns a setting's value in a type of JSON and TOML, without a password.

    Args:
        settings: the settings.
        key: dotted, as `config.known_keys` gives it.
    """
    value = _value(settings, key)
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


def _value(settings: Settings, key: str) -> object:
    value: object = settings
    for name in key.split("."):
        value = getattr(value, name)
    return value


def _without_password(text: str) -> str:
    return _PASSWORD.sub(r"\1\2…", text)


def _is_changeable(loaded: Loaded, key: str) -> bool:
    elsewhere = key in MACHINE_SETTINGS or key in ENVIRONMENT_SETTINGS
    return "." in key and not elsewhere and not isinstance(_value(loaded.settings, key), dict)


def change_setting(loaded: Loaded, file: Path, key: str, text: str) -> ChangedSetting:
    """Sets a value in the operator's file, whose comments and order stay.

    All settings are checked with it before the file is touched. Settings that name programs and places of this machine, and
    tables, are changed in the file alone.

    Args:
        loaded: the settings in use.
        file: to write to.
        key: dotted.
        text: the value as typed; of a list with commas between its items.

    Raises:
        ConfigError: there is no such setting, the value is none for it, or the file cannot be changed; it stays as it was.
    """
    (key,) = _single(_chosen(loaded.origins, (key,)), key)
    if not _is_changeable(loaded, key):
        raise ConfigError(f"the setting {key!r} is changed in the file {file} alone")
    if len(text) > _LONGEST:
        raise ConfigError(f"the value of {key!r} is longer than {_LONGEST:,} characters")
    current = _value(loaded.settings, key)
    given = [item.strip() for item in text.split(",") if item.strip()] if isinstance(current, tuple) else text
    in_file = load(file=file if file.is_file() else None, environ={}, options={"data_dir": loaded.settings.data_dir, key: given})
    write_settings(file, {key: _in_toml(_value(in_file.settings, key))})
    origin = loaded.origins[key]
    overruled = "" if origin.startswith(("default", "file ")) else origin
    return ChangedSetting(key, setting_value(loaded.settings, key), setting_value(in_file.settings, key), file, overruled)


def _single(keys: list[str], wanted: str) -> list[str]:
    if len(keys) != 1:
        raise ConfigError(f"{wanted!r} is a section, not a setting")
    return keys


def _in_toml(value: object) -> object:
    """Returns a value in a type of TOML, passwords included."""
    if isinstance(value, tuple):
        return [_in_toml(item) for item in value]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if value is None:
        return ""
    return value if isinstance(value, bool | int | float) else str(value)

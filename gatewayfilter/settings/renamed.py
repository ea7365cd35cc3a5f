"""Settings of earlier releases: aliases of renamed keys."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from gatewayfilter.errors import ConfigError

RENAMED_SETTINGS: Final[Mapping[str, str]] = {
    "tls.pass_through": "tls.pinned_apps",
    "tls.pass_through_after": "tls.pinned_apps_after",
    "tls.pass_through_days": "tls.pinned_apps_days",
    "tls.pass_through_names": "tls.pinned_apps_per_client",
    "filter.off_categories": "filter.disabled_categories",
    "gateway.free_devices": "gateway.bypass_devices",
    "gateway.free_sites": "gateway.bypass_destinations",
    "gateway.bypass": "gateway.pac_bypass",
}
"""Old key → the key in use."""

RENAMED_TASK_OPTIONS: Final[Mapping[str, str]] = {"pages_a_site": "pages_per_site"}
"""Likewise within a table `[crawl.tasks.NAME]`."""


@dataclass(frozen=True, slots=True)
class GivenSetting:
    """A setting as a file or the environment gives it.

    Attributes:
        key: dotted.
        origin: `file PATH` or `environment NAME`.
    """

    key: str
    value: object
    origin: str


def current_settings(given: Iterable[GivenSetting]) -> tuple[list[GivenSetting], list[str]]:
    """Returns the settings of one file or one environment under the keys in use, and a warning for each old key.

    Raises:
        ConfigError: a setting is given under both names.
    """
    current: dict[str, GivenSetting] = {}
    warnings: list[str] = []
    for setting in given:
        found = replace(setting, key=RENAMED_SETTINGS.get(setting.key, setting.key))
        if found.key in current:
            raise ConfigError(_given_twice(found.key, found.origin))
        if found.key != setting.key:
            warnings.append(f"setting {setting.key!r} ({setting.origin}) is now called {found.key!r}")
        if found.key == "crawl.tasks":
            found = _current_tasks(found, warnings)
        current[found.key] = found
    return list(current.values()), warnings


def _current_tasks(setting: GivenSetting, warnings: list[str]) -> GivenSetting:
    """Renames the options of tasks; a value of another form is left to the validation."""
    if not isinstance(setting.value, dict):
        return setting
    tasks = {
        name: _current_options(GivenSetting(f"crawl.tasks.{name}", options, setting.origin), warnings)
        for name, options in setting.value.items()
    }
    return replace(setting, value=tasks)


def _current_options(task: GivenSetting, warnings: list[str]) -> object:
    if not isinstance(task.value, dict):
        return task.value
    current: dict[object, object] = {}
    for key, value in task.value.items():
        name = RENAMED_TASK_OPTIONS.get(key, key)
        if name in current:
            raise ConfigError(_given_twice(f"{task.key}.{name}", task.origin))
        if name != key:
            warnings.append(f"setting '{task.key}.{key}' ({task.origin}) is now called {name!r}")
        current[name] = value
    return current


def _given_twice(key: str, origin: str) -> str:
    return f"setting {key!r} ({origin}) is given twice, by its old and by its new name: remove the old one"

"""Settings: defaults, then a TOML file, then `GATEWAYFILTER_SECTION__KEY`, then command-line options; each later one wins.

An unknown key is an error that suggests the nearest known one. Each value remembers where it came from (`config show`).
"""

import json
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from gatewayfilter.errors import ConfigError
from gatewayfilter.settings import (
    BlockDetails,
    ClassifySettings,
    CosmeticScope,
    CrawlSettings,
    CrawlTask,
    DenyRule,
    DomainGrowth,
    Extractor,
    FilterSettings,
    FleetSettings,
    Follow,
    GatewaySettings,
    GrowthMode,
    Http2Clients,
    LearnSettings,
    LogLevel,
    LogPrivacy,
    LogSettings,
    MailSecurity,
    NotifyEvent,
    NotifySettings,
    OidcSettings,
    OnError,
    PasswordUse,
    ProxySettings,
    RawTcpRule,
    RenderRule,
    RobotsRule,
    Section,
    Settings,
    Shared,
    SourceSettings,
    StoreSettings,
    TlsSettings,
    UnknownRule,
    WebSettings,
    WebTls,
    bundled_folder,
    default_data_dir,
    split_address,
)
from gatewayfilter.settings.renamed import RENAMED_SETTINGS, GivenSetting, current_settings

__all__ = [
    "ENVIRONMENT_SETTINGS",
    "ENV_PREFIX",
    "BlockDetails",
    "ClassifySettings",
    "CosmeticScope",
    "CrawlSettings",
    "CrawlTask",
    "DenyRule",
    "DomainGrowth",
    "Extractor",
    "FilterSettings",
    "FleetSettings",
    "Follow",
    "GatewaySettings",
    "GrowthMode",
    "Http2Clients",
    "LearnSettings",
    "Loaded",
    "LogLevel",
    "LogPrivacy",
    "LogSettings",
    "MailSecurity",
    "NotifyEvent",
    "NotifySettings",
    "OidcSettings",
    "OnError",
    "PasswordUse",
    "ProxySettings",
    "RawTcpRule",
    "RenderRule",
    "RobotsRule",
    "Settings",
    "Shared",
    "SourceSettings",
    "StoreSettings",
    "TlsSettings",
    "UnknownRule",
    "WebSettings",
    "WebTls",
    "bundled_folder",
    "default_data_dir",
    "known_keys",
    "load",
    "split_address",
]

ENV_PREFIX = "GATEWAYFILTER_"
ENVIRONMENT_SETTINGS = frozenset({"decide.token", "fleet.token", "rpz.tsig_secret", "web.oidc.client_secret"})
"""Secrets that stand in no settings file, which goes into backups."""
_FILE_VARIABLE = "GATEWAYFILTER_CONFIG"
_NO_SETTINGS = (
    _FILE_VARIABLE,
    "GATEWAYFILTER_BACKUP_PASSPHRASE",
    "GATEWAYFILTER_PYTHON",
    "GATEWAYFILTER_TEST_",
    "GATEWAYFILTER_ADBLOCK_SCANNER",
    "GATEWAYFILTER_PURE",
)
"""Environment variables that are not settings: of the program itself, scripts/find-python, the tests and the benchmarks."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings and where each value came from.

    Attributes:
        origins: dotted key → `default`, `file PATH`, `environment NAME` or `option`.
        warnings: a sentence for each key of an earlier release that was given.
        file: the TOML file that was read, `None` for none.
    """

    settings: Settings
    origins: Mapping[str, str]
    warnings: tuple[str, ...] = ()
    file: Path | None = None

    @property
    def warning(self) -> str:
        """All warnings in one line, `""` for none."""
        return "; ".join(self.warnings)


def known_keys() -> Iterator[tuple[str, str]]:
    """Yields every dotted key with its description."""
    return _keys_of(Settings, "")


def _keys_of(section: type[Section], prefix: str) -> Iterator[tuple[str, str]]:
    for name, info in section.model_fields.items():
        annotation = info.annotation
        if isinstance(annotation, type) and issubclass(annotation, Section):
            yield from _keys_of(annotation, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", info.description or ""


def load(
    *,
    file: Path | None = None,
    environ: Mapping[str, str] | None = None,
    options: Mapping[str, object] | None = None,
) -> Loaded:
    """Loads the settings.

    Args:
        file: a TOML file; without one, `$GATEWAYFILTER_CONFIG`, else `config.toml` in the state folder when it is there.
        environ: stands in for `os.environ`.
        options: dotted key → value, from the command line; `None` values are passed over.

    Raises:
        ConfigError: one sentence that names the key, where it stands, and the nearest known key.
    """
    environ = os.environ if environ is None else environ
    values: dict[str, object] = {}
    origins: dict[str, str] = {}
    known = dict(known_keys())
    environment, warnings = current_settings(_from_environment(environ, known))
    chosen = {key: value for key, value in (options or {}).items() if value is not None}
    file = file or (Path(environ[_FILE_VARIABLE]) if environ.get(_FILE_VARIABLE) else None)
    if file is None:
        data_dir = chosen.get("data_dir") or next(
            (item.value for item in environment if item.key == "data_dir"), default_data_dir()
        )
        candidate = Path(str(data_dir)) / "config.toml"
        file = candidate if os.path.lexists(candidate) else None  # a link to nothing, or a folder, is refused
    if file is not None:
        in_file, warnings_of_file = current_settings(_from_file(file, known))
        environment, warnings = [*in_file, *environment], [*warnings_of_file, *warnings]
    for item in environment:
        values[item.key], origins[item.key] = item.value, item.origin
    for key, value in chosen.items():
        _check_known(key, known, "the command line")
        values[key], origins[key] = value, "option"
    return Loaded(_validate(values, origins), {key: origins.get(key, "default") for key in known}, tuple(warnings), file)


def _from_file(file: Path, known: Mapping[str, str]) -> Iterator[GivenSetting]:
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the configuration {file}: {getattr(error, 'strerror', None) or error}") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file} is not valid TOML: {error}") from error
    yield from _from_table(document, "", known, file)


def _from_table(table: Mapping[str, object], prefix: str, known: Mapping[str, str], file: Path) -> Iterator[GivenSetting]:
    for name, value in table.items():
        key = f"{prefix}{name}"
        is_section = any(other.startswith(f"{key}.") for other in known)
        if isinstance(value, dict) and is_section:
            yield from _from_table(value, f"{key}.", known, file)
            continue
        if key in ENVIRONMENT_SETTINGS:
            raise ConfigError(f"the setting {key!r} is given by the environment alone, or by a file of its own: {key}_file")
        _check_known(key, known, str(file))
        yield GivenSetting(key, value, f"file {file}")


def _from_environment(environ: Mapping[str, str], known: Mapping[str, str]) -> Iterator[GivenSetting]:
    for name, text in environ.items():
        if not name.startswith(ENV_PREFIX) or name.startswith(_NO_SETTINGS):
            continue
        key = name.removeprefix(ENV_PREFIX).lower().replace("__", ".")
        _check_known(key, known, f"the environment ({name})")
        value: object = text
        current = RENAMED_SETTINGS.get(key, key)
        if current in _LIST_KEYS:
            value = [item.strip() for item in text.split(",") if item.strip()]
        elif current in _TABLE_KEYS:
            value = dict(item.partition("=")[::2] for item in text.replace(" ", "").strip("{}").split(",") if item)
        elif current in _JSON_KEYS:
            value = _from_json(text, name)
        yield GivenSetting(key, value, f"environment {name}")


def _from_json(text: str, name: str) -> object:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ConfigError(f"the environment ({name}) is not valid JSON: {error}") from error


_JSON_KEYS = frozenset({"crawl.tasks"})
_TABLE_KEYS = frozenset({"learn.modes"})
_LIST_KEYS = frozenset({
    "crawl.allow_networks", "crawl.allow_ports", "crawl.proxies", "crawl.proxies_from",
    "filter.disabled_categories",
    "fleet.locked_groups", "fleet.locked_policies", "fleet.names", "fleet.share",
    "gateway.bypass_destinations", "gateway.bypass_devices",
    "gateway.hosts", "gateway.lan", "gateway.pac_bypass", "gateway.ports", "learn.trusted_hosts",
    "log.ignored_clients", "log.ignored_hosts", "notify.command", "notify.events", "notify.mail_to",
    "icap.allow_networks", "rpz.allow_networks", "rpz.notify", "rpz.reload",
    "proxy.allow_networks", "web.names", "web.oidc.admin_values", "web.oidc.approver_values", "web.oidc.scopes",
    "web.oidc.viewer_values",
})  # fmt: skip


def _check_known(key: str, known: Mapping[str, str], where: str) -> None:
    if key in known or key in RENAMED_SETTINGS:
        return
    near = _nearest(key, known)
    hint = f"; did you mean {near!r}?" if near else ""
    raise ConfigError(f"unknown setting {key!r} in {where}{hint}")


def _nearest(key: str, known: Mapping[str, str]) -> str:
    """Returns the setting or section that was meant: a bare name may lack its section, or be a misspelt section."""
    section, dot, _ = key.partition(".")
    sections = list(dict.fromkeys(name.partition(".")[0] for name in known if "." in name))
    if dot and section not in sections and (near := get_close_matches(section, sections)):
        return f"{near[0]}.{key.partition('.')[2]}" if f"{near[0]}.{key.partition('.')[2]}" in known else near[0]
    if not dot:
        same = [name for name in known if name.partition(".")[2] == key]
        if same:  # `listen` is that of the proxy
            return min(same, key=lambda name: (name.partition(".")[0] != "proxy", name))
        if near := get_close_matches(key, sections):
            return near[0]
    near = get_close_matches(key, known)
    return near[0] if near else ""


_WORDS = {
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_type": "must be a whole number",
    "float_parsing": "must be a number",
    "bool_parsing": "must be true or false",
    "tuple_type": 'must be a list: ["{value}"]',
}
"""Words in place of the validator's, by the type of its error."""


def _validate(values: Mapping[str, object], origins: Mapping[str, str]) -> Settings:
    tree: dict[str, Any] = {}
    for key, value in values.items():
        *sections, name = key.split(".")
        table = tree
        for section in sections:
            table = table.setdefault(section, {})
        table[name] = value
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        first = error.errors()[0]
        parts = [str(part) for part in first["loc"] if not isinstance(part, int) and part != "[key]"]
        path = ".".join(parts)
        key = path if path in origins else ".".join(parts[:2])
        where = path if key in _JSON_KEYS else key
        if first["type"] == "extra_forbidden":  # of a table within a section; others are found before
            near = get_close_matches(parts[-1], CrawlTask.model_fields, cutoff=0.5)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ConfigError(f"unknown setting {where!r} in {origins.get(key, 'default')}{hint}") from error
        message = first["msg"].removeprefix("Value error, ")
        if first["type"] in _WORDS:
            message = _WORDS[first["type"]].format(value=first["input"])
        raise ConfigError(f"setting {where!r} ({origins.get(key, 'default')}): {message[0].lower()}{message[1:]}") from error

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
    CacheSettings,
    ClassifySettings,
    CosmeticScope,
    CrawlSettings,
    CrawlTask,
    DenyRule,
    DomainGrowth,
    Extractor,
    FilterSettings,
    Follow,
    GatewaySettings,
    GrowthMode,
    LearnSettings,
    LogLevel,
    LogPrivacy,
    LogSettings,
    OnError,
    ProxySettings,
    QueueSettings,
    RawTcpRule,
    RenderRule,
    RobotsRule,
    Section,
    Settings,
    SourceSettings,
    StoreSettings,
    TlsSettings,
    UnknownRule,
    WebSettings,
    bundled_folder,
    default_data_dir,
    split_address,
)

__all__ = [
    "ENV_PREFIX",
    "CacheSettings",
    "ClassifySettings",
    "CosmeticScope",
    "CrawlSettings",
    "CrawlTask",
    "DenyRule",
    "DomainGrowth",
    "Extractor",
    "FilterSettings",
    "Follow",
    "GatewaySettings",
    "GrowthMode",
    "LearnSettings",
    "Loaded",
    "LogLevel",
    "LogPrivacy",
    "LogSettings",
    "OnError",
    "ProxySettings",
    "QueueSettings",
    "RawTcpRule",
    "RenderRule",
    "RobotsRule",
    "Settings",
    "SourceSettings",
    "StoreSettings",
    "TlsSettings",
    "UnknownRule",
    "WebSettings",
    "bundled_folder",
    "default_data_dir",
    "known_keys",
    "load",
    "split_address",
]

ENV_PREFIX = "GATEWAYFILTER_"
_FILE_VARIABLE = "GATEWAYFILTER_CONFIG"
_NO_SETTINGS = (
    _FILE_VARIABLE,
    "GATEWAYFILTER_PYTHON",
    "GATEWAYFILTER_TEST_",
    "GATEWAYFILTER_ADBLOCK_SCANNER",
    "GATEWAYFILTER_PURE",
)
"""Variables that speak to the program itself, to scripts/find-python, to the tests and to the benchmarks."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings and where each value came from.

    Attributes:
        origins: dotted key → `default`, `file PATH`, `environment NAME` or `option`.
    """

    settings: Settings
    origins: Mapping[str, str]


def known_keys() -> Iterator[tuple[str, str]]:
    """Yields every dotted key with its description."""
    for name, info in Settings.model_fields.items():
        annotation = info.annotation
        if isinstance(annotation, type) and issubclass(annotation, Section):
            for key, inner in annotation.model_fields.items():
                yield f"{name}.{key}", inner.description or ""
        else:
            yield name, info.description or ""


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
    environment = dict(_from_environment(environ, known))
    chosen = {key: value for key, value in (options or {}).items() if value is not None}
    file = file or (Path(environ[_FILE_VARIABLE]) if environ.get(_FILE_VARIABLE) else None)
    if file is None:
        data_dir = chosen.get("data_dir") or environment.get("data_dir", ("", default_data_dir()))[1]
        candidate = Path(str(data_dir)) / "config.toml"
        file = candidate if candidate.is_file() else None
    if file is not None:
        for key, value in _from_file(file, known):
            values[key], origins[key] = value, f"file {file}"
    for key, (name, text) in environment.items():
        values[key], origins[key] = text, f"environment {name}"
    for key, value in chosen.items():
        _check_known(key, known, "the command line")
        values[key], origins[key] = value, "option"
    return Loaded(_validate(values, origins), {key: origins.get(key, "default") for key in known})


def _from_file(file: Path, known: Mapping[str, str]) -> Iterator[tuple[str, object]]:
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the configuration {file}: {getattr(error, 'strerror', None) or error}") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file} is not valid TOML: {error}") from error
    for name, value in document.items():
        if isinstance(value, dict):
            if not any(key.startswith(f"{name}.") for key in known):
                _check_known(name, known, str(file))
            for key, inner in value.items():
                _check_known(f"{name}.{key}", known, str(file))
                yield f"{name}.{key}", inner
        else:
            _check_known(name, known, str(file))
            yield name, value


def _from_environment(environ: Mapping[str, str], known: Mapping[str, str]) -> Iterator[tuple[str, tuple[str, object]]]:
    for name, text in environ.items():
        if not name.startswith(ENV_PREFIX) or name.startswith(_NO_SETTINGS):
            continue
        key = name.removeprefix(ENV_PREFIX).lower().replace("__", ".")
        _check_known(key, known, f"the environment ({name})")
        value: object = text
        if key in _LIST_KEYS:
            value = [item.strip() for item in text.split(",") if item.strip()]
        elif key in _TABLE_KEYS:
            value = dict(item.partition("=")[::2] for item in text.replace(" ", "").strip("{}").split(",") if item)
        elif key in _JSON_KEYS:
            value = _from_json(text, name)
        yield key, (name, value)


def _from_json(text: str, name: str) -> object:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ConfigError(f"the environment ({name}) is not valid JSON: {error}") from error


_JSON_KEYS = frozenset({"crawl.tasks"})
_TABLE_KEYS = frozenset({"learn.modes"})
_LIST_KEYS = frozenset({
    "crawl.allow_networks", "crawl.allow_ports", "crawl.proxies", "crawl.proxies_from",
    "filter.off_categories", "gateway.bypass", "gateway.free_devices",
    "gateway.free_sites", "gateway.hosts", "gateway.lan", "gateway.ports", "proxy.allow_networks",
})  # fmt: skip


def _check_known(key: str, known: Mapping[str, str], where: str) -> None:
    if key in known:
        return
    near = get_close_matches(key, known, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise ConfigError(f"unknown setting {key!r} in {where}{hint}")


def _validate(values: Mapping[str, object], origins: Mapping[str, str]) -> Settings:
    tree: dict[str, Any] = {}
    for key, value in values.items():
        section, dot, name = key.partition(".")
        if dot:
            tree.setdefault(section, {})[name] = value
        else:
            tree[section] = value
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        parts = [str(part) for part in first["loc"] if not isinstance(part, int) and part != "[key]"]
        key = ".".join(parts[:2])
        where = ".".join(parts) if key in _JSON_KEYS else key
        if first["type"] == "extra_forbidden":  # of a table within a section; others are found before
            near = get_close_matches(parts[-1], CrawlTask.model_fields, n=1, cutoff=0.5)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ConfigError(f"unknown setting {where!r} in {origins.get(key, 'default')}{hint}") from error
        message = first["msg"].removeprefix("Value error, ")
        raise ConfigError(f"setting {where!r} ({origins.get(key, 'default')}): {message[0].lower()}{message[1:]}") from error

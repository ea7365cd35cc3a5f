"""Settings: defaults, then a TOML file, then `GATEWAYFILTER_SECTION__KEY`, then command-line options; each later one wins.

An unknown key is an error that suggests the nearest known one. Each value remembers where it came from (`config show`).
"""

import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from gatewayfilter.errors import ConfigError

ENV_PREFIX = "GATEWAYFILTER_"
_FILE_VARIABLE = "GATEWAYFILTER_CONFIG"
_NO_SETTINGS = (_FILE_VARIABLE, "GATEWAYFILTER_PYTHON", "GATEWAYFILTER_TEST_")
"""Variables that speak to the program itself, to scripts/find-python and to the tests."""


def split_address(value: str) -> tuple[str, int]:
    """Splits `HOST:PORT`; an IPv6 host stands in brackets.

    Raises:
        ValueError: not of that form.
    """
    host, colon, port = value.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535 or not host or (":" in host and not host.startswith("[")):
        raise ValueError(f"must be HOST:PORT, not {value!r}")
    return host.strip("[]"), int(port)


class UnknownRule(StrEnum):
    """What happens to a URL that nobody has an opinion on."""

    ALLOW = "allow"
    HOLD = "hold"
    BLOCK = "block"


class OnError(StrEnum):
    """What happens to a request when the filter itself fails."""

    ALLOW = "allow"
    BLOCK = "block"


class RobotsRule(StrEnum):
    """Whether the crawler asks robots.txt: for every page, or only for pages that no user visited."""

    ALWAYS = "always"
    LINKS = "links"
    NEVER = "never"


class LogPrivacy(StrEnum):
    """What the decision log keeps of a URL."""

    FULL = "full"
    NO_QUERY = "no-query"
    HOST = "host"
    OFF = "off"


class LogLevel(StrEnum):
    """How much the processes say on standard error."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, use_attribute_docstrings=True)


class ProxySettings(_Section):
    """The way in."""

    listen: str = "127.0.0.1:8080"
    """Address and port that clients use; port 0 takes a free one."""
    mode: str = "regular"
    """`regular` (browser setting), `transparent` (redirected by the gateway) or `upstream:URL` (a parent proxy)."""
    workers: int = Field(default=0, ge=0, le=64)
    """Proxy processes; 0 means one a core."""
    unknown: UnknownRule = UnknownRule.ALLOW
    """A URL that no list knows: `allow` it and look at it, `hold` it for a verdict, or `block` it."""
    hold_ms: int = Field(default=1500, ge=0, le=30_000)
    """How long `hold` waits for the crawler's verdict before it allows, in milliseconds."""
    on_error: OnError = OnError.ALLOW
    """A request on which the filter itself fails: `allow` or `block`."""
    upstream_ca: Path | None = None
    """A PEM file of further authorities to trust for origin servers, beside the usual ones."""

    @field_validator("listen")
    @classmethod
    def _is_address(cls, value: str) -> str:
        split_address(value)
        return value

    @field_validator("mode")
    @classmethod
    def _is_mode(cls, value: str) -> str:
        if value in {"regular", "transparent"} or value.startswith(("upstream:http://", "upstream:https://")):
            return value
        raise ValueError("must be regular, transparent or upstream:http://HOST:PORT")


class CrawlSettings(_Section):
    """How pages are fetched."""

    allow_networks: tuple[str, ...] = ()
    """Private address ranges that may be crawled, e.g. `["127.0.0.0/8"]`; everything private is refused otherwise."""
    allow_ports: tuple[Annotated[int, Field(ge=1, le=65535)], ...] = (80, 443)
    """Ports that may be crawled on public addresses; `allow_networks` may be crawled on any."""
    concurrency: int = Field(default=32, ge=1, le=500)
    """Pages in flight."""
    per_host_concurrency: int = Field(default=4, ge=1, le=100)
    """Pages in flight on one host."""
    per_host_delay_s: float = Field(default=1.0, ge=0, le=3600)
    """Least time between two requests to one host, in seconds; a user's own visit goes ahead of it."""
    robots: RobotsRule = RobotsRule.ALWAYS
    """Whom robots.txt is asked for: `always`, only for `links` that no user visited, or `never`."""
    timeout_s: float = Field(default=10.0, gt=0, le=300)
    """Longest time for one page, redirects included, in seconds."""
    max_bytes: int = Field(default=2_000_000, ge=1_000, le=50_000_000)
    """Most decoded bytes read of a page."""
    max_redirects: int = Field(default=5, ge=0, le=20)
    """Most redirects followed; each is checked anew."""
    max_attempts: int = Field(default=3, ge=1, le=20)
    """Tries before a URL goes to the dead letters."""
    max_waiting: int = Field(default=200_000, ge=1)
    """Most URLs that wait; beyond it new ones are dropped and counted."""
    follow_links: int = Field(default=20, ge=0, le=1000)
    """Links of a harmful page, on its own site, that are looked at next; 0 follows none."""
    user_agent: str = "GatewayFilter/0.1 (+content classification for a local network)"
    """What the crawler calls itself."""
    upstream_ca: Path | None = None
    """A PEM file of further authorities to trust when crawling."""

    @field_validator("allow_networks")
    @classmethod
    def _are_networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for item in value:
            ip_network(item)
        return value


class LearnSettings(_Section):
    """How lists grow."""

    enabled: bool = True
    """Whether unknown pages are fetched and classified at all."""
    block_days: float = Field(default=30.0, gt=0)
    """A learned block expires and is checked again after this many days."""
    allow_days: float = Field(default=7.0, gt=0)
    """A learned "harmless" expires and is checked again after this many days."""
    publish_after: int = Field(default=1000, ge=1)
    """Learned changes after which a new snapshot is published."""
    publish_interval_s: float = Field(default=900.0, ge=1)
    """Learned changes are published after this many seconds at the latest."""


class StoreSettings(_Section):
    """Where small, changing data lives."""

    url: str = ""
    """SQLAlchemy URL; empty means SQLite in the state folder."""


class CacheSettings(_Section):
    """A shared cache, for a fleet."""

    url: str = ""
    """Must be empty: this version keeps its caches in the database."""

    @field_validator("url")
    @classmethod
    def _is_empty(cls, value: str) -> str:
        if value:
            raise ValueError("this version has no shared cache yet; leave it empty")
        return value


class QueueSettings(_Section):
    """A shared queue, for a fleet."""

    url: str = ""
    """Must be empty: this version keeps its frontier in the database."""

    @field_validator("url")
    @classmethod
    def _is_empty(cls, value: str) -> str:
        if value:
            raise ValueError("this version has no shared queue yet; leave it empty")
        return value


class WebSettings(_Section):
    """The dashboard."""

    listen: str = "127.0.0.1:8081"
    """Reserved for the dashboard, which this version does not have yet; nothing listens."""

    @field_validator("listen")
    @classmethod
    def _is_address(cls, value: str) -> str:
        split_address(value)
        return value


class FilterSettings(_Section):
    """What is blocked."""

    off_categories: tuple[str, ...] = ()
    """Categories that do not block, although a list or the classifier names them."""


class SourceSettings(_Section):
    """Lists from outside."""

    bundled: bool = True
    """Whether the starter lists that come with the program are active."""
    max_bytes: int = Field(default=256_000_000, ge=1_000)
    """Largest list accepted, decompressed, in bytes."""
    timeout_s: float = Field(default=60.0, gt=0)
    """Longest time for one download, in seconds."""
    interval_h: float = Field(default=24.0, gt=0)
    """How often a subscription is asked for news unless it says otherwise, in hours."""


class LogSettings(_Section):
    """What is written down."""

    level: LogLevel = LogLevel.INFO
    """How much the processes say on standard error."""
    privacy: LogPrivacy = LogPrivacy.FULL
    """What the decision log keeps of a URL: `full`, `no-query`, `host` or `off` (nothing is logged)."""
    hash_clients: bool = False
    """Whether clients are logged as a keyed hash instead of their address."""
    retention_days: float = Field(default=30.0, gt=0)
    """Decisions older than this many days are removed."""
    retention_mb: float = Field(default=500.0, gt=0)
    """The decision log is cut from its oldest end above this size, in MB (estimated at 250 bytes a decision)."""


def default_data_dir() -> Path:
    """Returns the state folder: `$XDG_STATE_HOME/gatewayfilter`, or `~/.local/state/gatewayfilter`."""
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "gatewayfilter"


def bundled_folder() -> Path:
    """Returns the folder of the lists that come with the program: in the wheel `bundled/`, in a checkout `lists/`."""
    package = Path(__file__).parent
    installed = package / "bundled"
    return installed if installed.is_dir() else package.parent / "lists"


class Settings(_Section):
    """All settings."""

    data_dir: Path = Field(default_factory=default_data_dir)
    """State folder: database, snapshots, subscriptions, CA. Made with mode 0700."""
    proxy: ProxySettings = ProxySettings()
    crawl: CrawlSettings = CrawlSettings()
    learn: LearnSettings = LearnSettings()
    filter: FilterSettings = FilterSettings()
    sources: SourceSettings = SourceSettings()
    store: StoreSettings = StoreSettings()
    cache: CacheSettings = CacheSettings()
    queue: QueueSettings = QueueSettings()
    web: WebSettings = WebSettings()
    log: LogSettings = LogSettings()

    @property
    def store_url(self) -> str:
        """The SQLAlchemy URL in use."""
        return self.store.url or f"sqlite:///{self.data_dir / 'gatewayfilter.sqlite3'}"


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
        if isinstance(annotation, type) and issubclass(annotation, _Section):
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
        yield key, (name, value)


_LIST_KEYS = frozenset({"crawl.allow_networks", "crawl.allow_ports", "filter.off_categories"})


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
        key = ".".join(str(part) for part in first["loc"][:2] if not isinstance(part, int))
        message = first["msg"].removeprefix("Value error, ")
        raise ConfigError(f"setting {key!r} ({origins.get(key, 'default')}): {message[0].lower()}{message[1:]}") from error

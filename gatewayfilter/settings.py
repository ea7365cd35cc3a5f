"""The settings by section: names, types, defaults and what each is for. How they are read: config.py."""

import os
from enum import StrEnum
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator

from gatewayfilter.urls import canonical_host


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
    INSPECT = "inspect"
    BLOCK = "block"


class CosmeticScope(StrEnum):
    """What is hidden on pages."""

    OFF = "off"
    SPECIFIC = "specific"
    ALL = "all"


class OnError(StrEnum):
    """What happens to a request when the filter itself fails."""

    ALLOW = "allow"
    BLOCK = "block"


class DenyRule(StrEnum):
    """How an HTTPS connection to a blocked host is refused."""

    PAGE = "page"
    ALERT = "alert"


class GrowthMode(StrEnum):
    """What happens to a page that the classifier judges harmful."""

    BLOCK = "block"
    BLOCK_AND_REVIEW = "block-and-review"
    REVIEW = "review"


class DomainGrowth(StrEnum):
    """What happens to a host most of whose pages were judged harmful."""

    OFF = "off"
    REVIEW = "review"
    BLOCK = "block"


class RobotsRule(StrEnum):
    """Whether the crawler asks robots.txt: for every page, or only for pages that no user visited."""

    ALWAYS = "always"
    LINKS = "links"
    NEVER = "never"


class Extractor(StrEnum):
    """Who tells a page's main text from the rest."""

    DENSITY = "density"
    RESILIPARSE = "resiliparse"


class Dedup(StrEnum):
    """How the crawler remembers which URLs it has seen."""

    BLOOM = "bloom"
    TREE = "tree"


class RenderRule(StrEnum):
    """Whether pages that a script builds are rendered in a browser before they are judged."""

    OFF = "off"
    AUTO = "auto"


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


class Section(BaseModel):
    """A table of the settings file: frozen, and no other keys than these."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, use_attribute_docstrings=True)


class ProxySettings(Section):
    """The way in."""

    listen: str = "127.0.0.1:8080"
    """Address and port that clients use; port 0 takes a free one."""
    mode: str = "regular"
    """`regular` (browser setting), `transparent` (redirected by the gateway) or `upstream:URL` (a parent proxy)."""
    workers: int = Field(default=0, ge=0, le=64)
    """Proxy processes; 0 means one a core."""
    unknown: UnknownRule = UnknownRule.ALLOW
    """A URL that no list knows: `allow` it and look at it, `hold` it for a verdict, `inspect` its page, or `block` it."""
    hold_ms: int = Field(default=1500, ge=0, le=30_000)
    """How long `hold` waits for the crawler's verdict before it allows, in milliseconds."""
    inspect_ms: int = Field(default=2000, ge=10, le=30_000)
    """How long `inspect` may look at a page, its turn awaited included, in milliseconds; then `on_error` decides."""
    on_error: OnError = OnError.ALLOW
    """A request on which the filter itself fails: `allow` or `block`."""
    upstream_ca: Path | None = None
    """A PEM file of further authorities to trust for origin servers, beside the usual ones."""
    brand_name: str = Field(default="", max_length=80)
    """The name that block and error pages show instead of GatewayFilter's."""
    block_template: Path | None = None
    """A Jinja template of your own for block and error pages."""
    unblock_requests: bool = True
    """Whether block pages have a button to ask for a page to be unblocked."""

    auth_file: Path | None = None
    """A file of users who may use the proxy (`gatewayfilter proxy-user`); without one nobody has to log in."""
    auth_loopback: bool = True
    """Whether clients on this machine have to log in as well, where there is an `auth_file`."""
    idle_s: float = Field(default=600.0, ge=1, le=86_400)
    """A connection on which nothing was sent for so long is closed, in seconds."""
    max_connections: int = Field(default=8192, ge=1, le=1_000_000)
    """Most client connections of one worker; further ones are closed at once."""
    max_connections_per_client: int = Field(default=1024, ge=1, le=1_000_000)
    """Most connections of one client address to one worker."""

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


class TlsSettings(Section):
    """Which HTTPS connections are opened, passed through unread, or refused."""

    deny: DenyRule = DenyRule.PAGE
    """A blocked host: open the connection and show the block `page`, or end it with a TLS `alert`."""
    splice: bool = True
    """Whether the hosts of splice lists and of your own splice entries pass through unread."""
    pass_through: bool = True
    """Whether apps that accept no other certificate than their maker's are noticed and passed through unread."""
    pass_through_after: int = Field(default=3, ge=2, le=100)
    """After how many broken-off connections of one device to one name, within ten minutes."""
    pass_through_days: float = Field(default=7.0, gt=0, le=365)
    """How long that lasts, in days."""


class CrawlSettings(Section):
    """How pages are fetched."""

    allow_networks: tuple[str, ...] = ()
    """Private address ranges that may be crawled, e.g. `["127.0.0.0/8"]`; everything private is refused otherwise."""
    allow_ports: tuple[Annotated[int, Field(ge=1, le=65535)], ...] = (80, 443)
    """Ports that may be crawled on public addresses; `allow_networks` may be crawled on any."""
    workers: int = Field(default=1, ge=1, le=64)
    """Crawler processes; each takes sites of its own, and those of one that dies."""
    concurrency: int = Field(default=32, ge=1, le=500)
    """Pages in flight."""
    per_host_concurrency: int = Field(default=4, ge=1, le=100)
    """Pages in flight on one host."""
    per_host_delay_s: float = Field(default=1.0, ge=0, le=3600)
    """Least time between two requests to one host, in seconds; a user's own visit goes ahead of it."""
    robots: RobotsRule = RobotsRule.ALWAYS
    """Whom robots.txt is asked for: `always`, only for `links` that no user visited, or `never`."""
    dns_ttl_s: float = Field(default=60.0, ge=0, le=86_400)
    """How long the crawler remembers a host name's addresses, in seconds; 0 asks each time."""
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
    dedup: Dedup = Dedup.BLOOM
    """How seen links are remembered: `bloom` (2 bytes each, errs once in a thousand) or the exact `tree` (17 bytes each)."""
    archive_mb: int = Field(default=200, ge=0, le=10_000_000)
    """Most megabytes of fetched pages kept on disk, evidence of blocked ones aside; 0 keeps none, and pages wait in memory."""
    render: RenderRule = RenderRule.OFF
    """`auto` renders pages that a script builds in the system's Chromium before they are judged; needs the extra `render`."""
    proxies: tuple[str, ...] = ()
    """Proxies that the crawler goes through (`HOST:PORT` or `http://USER:PASSWORD@HOST:PORT`); none: it goes itself."""
    proxies_from: tuple[str, ...] = ()
    """Files and http(s) addresses with further proxies, one a line; read anew every ten minutes."""
    proxy_check_url: str = ""
    """A page that proxies are checked with; one that repeats the request shows who is anonymous; empty checks none."""
    proxies_anonymous: bool = False
    """Whether proxies that tell whom they work for are left out; only a check can know."""
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


class ClassifySettings(Section):
    """How pages are read."""

    extractor: Extractor = Extractor.DENSITY
    """Who tells a page's main text from the rest: text `density`, or `resiliparse`."""


class LearnSettings(Section):
    """How lists grow."""

    enabled: bool = True
    """Whether unknown pages are fetched and classified at all."""
    passive: bool = True
    """Whether a public page that a client was just given is classified as it came, instead of being fetched again."""
    block_days: float = Field(default=30.0, gt=0)
    """A learned block expires and is checked again after this many days."""
    allow_days: float = Field(default=7.0, gt=0)
    """A learned "harmless" expires and is checked again after this many days."""
    mode: GrowthMode = GrowthMode.BLOCK_AND_REVIEW
    """A page judged harmful: `block` it at once, `block-and-review` (and ask a person), or only ask for a `review`."""
    modes: dict[str, GrowthMode] = Field(default={})
    """The same for single categories, e.g. `{ gambling = "review" }`; in the environment `gambling=review,adult=block`."""
    domains: DomainGrowth = DomainGrowth.BLOCK
    """A host most of whose pages are harmful: `block` it whole (and ask a person), only ask for a `review`, or `off`."""
    domain_pages: int = Field(default=5, ge=3)
    """Least number of harmful pages with different texts before a host counts as harmful."""
    domain_share: float = Field(default=0.5, ge=0.5, le=1)
    """Least share of a host's judged pages that must be harmful before it counts as harmful."""
    max_open_reviews: int = Field(default=10_000, ge=1)
    """Most tasks that wait for a person; beyond it new ones are dropped and counted."""
    publish_after: int = Field(default=1000, ge=1)
    """Learned changes after which a new snapshot is published."""
    publish_interval_s: float = Field(default=900.0, ge=1)
    """Learned changes are published after this many seconds at the latest."""

    def mode_of(self, category: str) -> GrowthMode:
        """Returns what happens to pages of a category."""
        return self.modes.get(category, self.mode)


class StoreSettings(Section):
    """Where small, changing data lives."""

    url: str = ""
    """SQLAlchemy URL; empty means SQLite in the state folder."""


class CacheSettings(Section):
    """A shared cache, for a fleet."""

    url: str = ""
    """Must be empty: this version keeps its caches in the database."""

    @field_validator("url")
    @classmethod
    def _is_empty(cls, value: str) -> str:
        if value:
            raise ValueError("this version has no shared cache yet; leave it empty")
        return value


class QueueSettings(Section):
    """A shared queue, for a fleet."""

    url: str = ""
    """Must be empty: this version keeps its frontier in the database."""

    @field_validator("url")
    @classmethod
    def _is_empty(cls, value: str) -> str:
        if value:
            raise ValueError("this version has no shared queue yet; leave it empty")
        return value


class WebSettings(Section):
    """The dashboard."""

    listen: str = "127.0.0.1:8081"
    """Reserved for the dashboard, which this version does not have yet; nothing listens."""

    @field_validator("listen")
    @classmethod
    def _is_address(cls, value: str) -> str:
        split_address(value)
        return value


class GatewaySettings(Section):
    """The machine as a network's way out, and what devices are told about it."""

    lan: tuple[str, ...] = ()
    """Interfaces of the LAN, whose web traffic `gateway up` redirects, e.g. `["lan0"]`."""
    ports: tuple[Annotated[int, Field(ge=1, le=65535)], ...] = (80, 443)
    """TCP ports that are redirected; on UDP they are QUIC."""
    reject_quic: bool = True
    """Whether QUIC (HTTP/3), which the filter cannot see, is refused, so that browsers turn to TCP."""
    reject_dot: bool = False
    """Whether DNS over TLS and over QUIC (port 853) are refused, so that devices ask the network's own DNS."""
    filter_private: bool = False
    """Whether connections to other private networks are redirected too."""
    own_port_80: bool = False
    """Whether port 80 of the gateway itself is the filter's set-up page and `/wpad.dat`; nothing else may use it then."""
    free_devices: tuple[str, ...] = ()
    """Devices that go past the filter: addresses, networks or hardware addresses."""
    free_sites: tuple[str, ...] = ()
    """Destinations that go past the filter: addresses or networks."""
    fail_open: bool = False
    """Whether web traffic goes past the filter while no worker listens, instead of nowhere."""
    hosts: tuple[str, ...] = ("gatewayfilter.internal", "192.0.2.80", "2001:db8::80")
    """Names and addresses under which the filter serves its set-up page to everybody whose traffic passes it."""
    bypass: tuple[str, ...] = ()
    """Hosts that the PAC file sends past the filter: `bank.example` (with all below it), addresses, networks."""

    @field_validator("hosts")
    @classmethod
    def _are_hosts(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(canonical_host(item) for item in value)

    @field_validator("bypass")
    @classmethod
    def _are_hosts_or_networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for item in value:
            if "/" in item:
                ip_network(item)
            else:
                canonical_host(item.removeprefix("*").removeprefix("."))
        return value


class FilterSettings(Section):
    """What is blocked."""

    off_categories: tuple[str, ...] = ()
    """Categories that do not block, although a list or the classifier names them."""
    cosmetic: CosmeticScope = CosmeticScope.SPECIFIC
    """What Adblock rules hide on pages: nothing, what names the site or is of a short list, or all (EasyList: +212 kB)."""
    replace: bool = True
    """Whether Adblock rules may change the text of responses (`$replace`) and take elements out of the HTML (`##^`)."""

    @field_validator("cosmetic", mode="before")
    @classmethod
    def _was_a_switch(cls, value: object) -> object:
        """Takes the words of earlier releases: on for all rules, off for none."""
        return {"true": CosmeticScope.ALL, "false": CosmeticScope.OFF}.get(str(value).lower(), value)


class SourceSettings(Section):
    """Lists from outside."""

    bundled: bool = True
    """Whether the starter lists that come with the program are active."""
    max_bytes: int = Field(default=256_000_000, ge=1_000)
    """Largest list accepted, decompressed, in bytes."""
    timeout_s: float = Field(default=60.0, gt=0)
    """Longest time for one download, in seconds."""
    interval_h: float = Field(default=24.0, gt=0)
    """How often a subscription is asked for news unless it says otherwise, in hours."""


class LogSettings(Section):
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


class Settings(Section):
    """All settings."""

    data_dir: Path = Field(default_factory=default_data_dir)
    """State folder: database, snapshots, subscriptions, CA. Made with mode 0700."""
    proxy: ProxySettings = ProxySettings()
    tls: TlsSettings = TlsSettings()
    crawl: CrawlSettings = CrawlSettings()
    classify: ClassifySettings = ClassifySettings()
    learn: LearnSettings = LearnSettings()
    filter: FilterSettings = FilterSettings()
    sources: SourceSettings = SourceSettings()
    store: StoreSettings = StoreSettings()
    cache: CacheSettings = CacheSettings()
    queue: QueueSettings = QueueSettings()
    web: WebSettings = WebSettings()
    gateway: GatewaySettings = GatewaySettings()
    log: LogSettings = LogSettings()

    @property
    def store_url(self) -> str:
        """The SQLAlchemy URL in use."""
        return self.store.url or f"sqlite:///{self.data_dir / 'gatewayfilter.sqlite3'}"

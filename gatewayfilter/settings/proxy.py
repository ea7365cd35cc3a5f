"""Settings of sections `[proxy]` and `[tls]`."""

from enum import StrEnum
from pathlib import Path

from pydantic import Field, field_validator

from gatewayfilter.settings.base import Networks, Section, split_address


class UnknownRule(StrEnum):
    """What happens to a URL that is on no list."""

    ALLOW = "allow"
    HOLD = "hold"
    INSPECT = "inspect"
    BLOCK = "block"


class OnError(StrEnum):
    """What happens to a request when the filter itself fails."""

    ALLOW = "allow"
    BLOCK = "block"


class RawTcpRule(StrEnum):
    """Which hosts may be reached by protocols that are neither HTTP nor TLS, and so are not read."""

    OFF = "off"
    KNOWN = "known"
    ON = "on"


class Http2Clients(StrEnum):
    """Which clients get HTTP/2 on intercepted connections."""

    NEEDED = "needed"
    OFFERED = "offered"


class BlockDetails(StrEnum):
    """What a block page shows of a block."""

    FULL = "full"
    SHORT = "short"


class ProxySettings(Section):
    """The proxy: address, processes, limits."""

    listen: str = "127.0.0.1:8080"
    """Address and port that clients use; port 0 takes a free one."""
    mode: str = "regular"
    """`regular` (browser setting), `transparent` (redirected by the gateway) or `upstream:URL` (a parent proxy)."""
    workers: int = Field(default=0, ge=0, le=64)
    """Proxy processes; 0 means one a core."""
    stall_s: float = Field(default=20.0, ge=0, le=3600)
    """A worker is killed and restarted when its event loop is blocked for this long, in seconds; 0 means never."""
    unknown: UnknownRule = UnknownRule.ALLOW
    """A URL on no list: `allow` it and classify it later, `hold` it for a verdict, `inspect` its page, or `block` it."""
    hold_ms: int = Field(default=1500, ge=0, le=30_000)
    """How long `hold` waits for the crawler's verdict before it allows, in milliseconds."""
    inspect_ms: int = Field(default=2000, ge=10, le=30_000)
    """Time limit of `inspect` for a page, including the wait for its turn, in milliseconds; then `on_error` decides."""
    on_error: OnError = OnError.ALLOW
    """A request on which the filter itself fails: `allow` or `block`."""
    allow_networks: Networks = ()
    """Internal networks that clients may reach through the proxy by any name, e.g. `["10.0.0.0/8"]`; public ones are open."""
    raw_tcp: RawTcpRule = RawTcpRule.KNOWN
    """Tunnels with neither HTTP nor TLS: `off` none, `known` to spliced hosts, `on` to all allowed hosts."""
    upstream_ca: Path | None = None
    """A PEM file of further authorities to trust for origin servers, beside the usual ones."""
    brand_name: str = Field(default="", max_length=80)
    """The name that block and error pages show instead of GatewayFilter's."""
    block_template: Path | None = None
    """A Jinja template of your own for block and error pages."""
    block_details: BlockDetails = BlockDetails.FULL
    """What block pages show: `full` the list, rule, evidence and the command that unblocks, `short` the category alone."""
    unblock_requests: bool = True
    """Whether block pages have a button to request that the page is unblocked."""

    upstream_auth_file: Path | None = None
    """A file with one line `name:password`: how the filter logs in at its parent proxy (`mode = "upstream:…"`)."""
    auth_file: Path | None = None
    """A file of users of the proxy (`gatewayfilter proxy-user`); without one no log-in is required."""
    auth_loopback: bool = True
    """Whether clients on this machine have to log in as well, where there is an `auth_file`."""
    idle_s: float = Field(default=600.0, ge=1, le=86_400)
    """A connection on which nothing was sent for so long is closed, in seconds."""
    max_connections: int = Field(default=8192, ge=1, le=1_000_000)
    """Most client connections of one worker; further ones are closed at once."""
    max_connections_per_client: int = Field(default=1024, ge=1, le=1_000_000)
    """Most connections of one client address to one worker."""
    http2_clients: Http2Clients = Http2Clients.NEEDED
    """HTTP/2 on intercepted connections: for clients that offer nothing else (`needed`), or all that offer it (`offered`)."""
    shared_origins: int = Field(default=256, ge=0, le=4096)
    """Idle connections to origins that a worker keeps when their client has left, for the next client; 0 keeps none."""
    fast_path: bool = True
    """Whether plain messages take a shorter path than mitmproxy's code; turned off, it costs CPU and helps to find a fault."""

    @field_validator("listen")
    @classmethod
    def _is_address(cls, value: str) -> str:
        split_address(value)
        return value

    @field_validator("stall_s")
    @classmethod
    def _is_longer_than_a_beat(cls, value: float) -> float:
        if 0 < value < 3:  # workers send a heartbeat once a second
            raise ValueError("must be 0 or at least 3")
        return value

    @field_validator("mode")
    @classmethod
    def _is_mode(cls, value: str) -> str:
        if value in {"regular", "transparent"} or value.startswith(("upstream:http://", "upstream:https://")):
            return value
        raise ValueError("must be regular, transparent or upstream:http://HOST:PORT")


class DenyRule(StrEnum):
    """How an HTTPS connection to a blocked host is refused."""

    PAGE = "page"
    ALERT = "alert"


class TlsSettings(Section):
    """Which HTTPS connections are opened, passed through unread, or refused."""

    deny: DenyRule = DenyRule.PAGE
    """A blocked host: open the connection and show the block `page`, or end it with a TLS `alert`."""
    splice: bool = True
    """Whether the hosts of splice lists and of your own splice entries pass through unread."""
    pinned_apps: bool = True
    """Whether apps that accept no other certificate than their maker's are noticed and passed through unread."""
    pinned_apps_after: int = Field(default=3, ge=2, le=100)
    """After how many broken-off connections of one device to one name, within ten minutes."""
    pinned_apps_days: float = Field(default=7.0, gt=0, le=365)
    """How long that lasts, in days."""
    pinned_apps_per_client: int = Field(default=100, ge=1, le=1000)
    """For how many names at once a device can have that."""

"""The server of a publisher's endpoint: its address, TLS and bounds."""

import ipaddress
import logging
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import uvicorn

from gatewayfilter.addresses.rtnetlink import read_lan_address
from gatewayfilter.certificates.server_certificate import issue_server_certificate
from gatewayfilter.config import Settings, split_address
from gatewayfilter.errors import StartupError
from gatewayfilter.web.connections import BoundedProtocol

_log = logging.getLogger(__name__)

MAX_CONNECTIONS: Final = 256
"""Connections at once; further ones get 503."""


class FleetServer(uvicorn.Server):
    """uvicorn's server; signals are answered by its process."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves signals as they are."""
        yield


def fleet_server(settings: Settings, endpoint: Any) -> FleetServer:
    """Returns the server of an endpoint, with TLS anywhere but on loopback.

    Args:
        settings: with the address.
        endpoint: the ASGI application.

    Raises:
        StartupError: certificate and key, or the authority, cannot be used.
    """
    host, port = split_address(settings.fleet.listen)
    config = uvicorn.Config(
        endpoint,
        host=host,
        port=port,
        access_log=False,
        log_config=None,
        log_level="error",  # a line for each malformed request would let anybody fill the log
        lifespan="off",
        server_header=False,
        proxy_headers=False,
        ws="none",
        http=BoundedProtocol,
        loop="asyncio",
        h11_max_incomplete_event_size=16_384,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=20,
        timeout_graceful_shutdown=2,
    )
    config.load()
    if not _is_loopback(host):
        config.ssl = _context(settings, host)
    _log.info("followers are served on %s", settings.fleet.listen)
    return FleetServer(config)


def _context(settings: Settings, host: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    fleet = settings.fleet
    try:
        if fleet.certificate is not None:
            context.load_cert_chain(fleet.certificate, fleet.certificate_key)
        else:
            with TemporaryDirectory(prefix="gatewayfilter-") as folder:  # mode 0700; gone when it is loaded
                path = Path(folder) / "server.pem"
                path.write_bytes(issue_server_certificate(settings.data_dir / "ca", _names(host, fleet.names)))
                context.load_cert_chain(path)
    except (OSError, ssl.SSLError) as error:
        raise StartupError(f"cannot use the certificate of fleet.listen (fleet.certificate): {error}") from error
    return context


def _names(host: str, names: tuple[str, ...]) -> set[str]:
    found = {*names, "127.0.0.1", "::1"}
    if not ipaddress.ip_address(host).is_unspecified if _is_address(host) else True:
        found.add(host)
    if (address := read_lan_address()) is not None:
        found.add(address)
    return found


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)

"""The server of a publisher's endpoint: its address, TLS and bounds."""

import logging
import ssl
from typing import Any, Final

from gatewayfilter.config import Settings, split_address
from gatewayfilter.errors import StartupError
from gatewayfilter.settings.web import is_loopback
from gatewayfilter.web.connections import UnsignalledServer, bounded_config
from gatewayfilter.web.tls import context_of

_log = logging.getLogger(__name__)

MAX_CONNECTIONS: Final = 256
"""Connections at once; further ones get 503."""


def fleet_server(settings: Settings, endpoint: Any) -> UnsignalledServer:
    """Returns the server of an endpoint, with TLS anywhere but on loopback.

    Args:
        settings: with the address.
        endpoint: the ASGI application.

    Raises:
        StartupError: certificate and key, or the authority, cannot be used.
    """
    host, port = split_address(settings.fleet.listen)
    config = bounded_config(
        endpoint,
        head_bytes=16_384,
        connections=MAX_CONNECTIONS,
        host=host,
        port=port,
        log_level="error",  # a line for each malformed request would let anybody fill the log
    )
    config.load()
    if not is_loopback(host):
        config.ssl = _context(settings, host)
    _log.info("followers are served on %s", settings.fleet.listen)
    return UnsignalledServer(config)


def _context(settings: Settings, host: str) -> ssl.SSLContext:
    fleet = settings.fleet
    try:
        return context_of(fleet.certificate, fleet.certificate_key, settings.data_dir / "ca", {host, *fleet.names})
    except (OSError, ssl.SSLError) as error:
        raise StartupError(f"cannot use the certificate of fleet.listen (fleet.certificate): {error}") from error

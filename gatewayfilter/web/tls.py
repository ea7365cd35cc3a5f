"""TLS of the dashboard: the operator's certificate, or one that the filter's authority issues at each start."""

import ipaddress
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gatewayfilter.addresses.rtnetlink import read_lan_address
from gatewayfilter.certificates.server_certificate import issue_server_certificate
from gatewayfilter.config import Settings, split_address
from gatewayfilter.errors import StartupError
from gatewayfilter.web.access.gate import own_names


def server_context(settings: Settings) -> ssl.SSLContext:
    """Returns the TLS context of the dashboard.

    Raises:
        StartupError: certificate and key, or the authority, cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    web = settings.web
    try:
        if web.certificate is not None:
            context.load_cert_chain(web.certificate, web.key)
        else:
            with _issued(settings) as path:
                context.load_cert_chain(path)
    except (OSError, ssl.SSLError) as error:
        raise StartupError(f"cannot use the certificate of the dashboard (web.certificate, web.key): {error}") from error
    return context


@contextmanager
def _issued(settings: Settings) -> Iterator[Path]:
    host = split_address(settings.web.listen)[0]
    names = {name for name in own_names(host, settings.web.names) if _is_usable(name)} | {"127.0.0.1", "::1"}
    if (address := read_lan_address()) is not None:
        names.add(address)
    with tempfile.TemporaryDirectory(prefix="gatewayfilter-") as folder:  # mode 0700; gone when it is loaded
        path = Path(folder) / "server.pem"
        path.write_bytes(issue_server_certificate(settings.data_dir / "ca", names))
        yield path


def _is_usable(name: str) -> bool:
    try:
        return not ipaddress.ip_address(name).is_unspecified
    except ValueError:
        return name.isascii() and len(name) <= 253 and name == name.strip(".")

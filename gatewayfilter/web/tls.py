"""TLS of the filter's own servers: the operator's certificate, or one that the filter's authority issues at each start."""

import ipaddress
import ssl
import tempfile
from collections.abc import Iterable
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
    web = settings.web
    names = own_names(split_address(web.listen)[0], web.names)
    try:
        return context_of(web.certificate, web.key, settings.data_dir / "ca", names)
    except (OSError, ssl.SSLError) as error:
        raise StartupError(f"cannot use the certificate of the dashboard (web.certificate, web.key): {error}") from error


def context_of(certificate: Path | None, key: Path | None, authority: Path, names: Iterable[str]) -> ssl.SSLContext:
    """Returns the TLS context of a server of the filter.

    Args:
        certificate: chain in PEM, `None` for one that the authority issues now.
        key: of the certificate.
        authority: folder of the filter's authority.
        names: of an issued certificate, beside those of loopback and the address in the LAN; what can be none is left out.

    Raises:
        OSError, ssl.SSLError: certificate and key cannot be used.
        StartupError: the authority cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if certificate is not None:
        context.load_cert_chain(certificate, key)
        return context
    issued = {name for name in names if _is_usable(name)} | {"127.0.0.1", "::1"}
    if (address := read_lan_address()) is not None:
        issued.add(address)
    with tempfile.TemporaryDirectory(prefix="gatewayfilter-") as folder:  # mode 0700; gone when it is loaded
        path = Path(folder) / "server.pem"
        path.write_bytes(issue_server_certificate(authority, issued))
        context.load_cert_chain(path)
    return context


def _is_usable(name: str) -> bool:
    try:
        return not ipaddress.ip_address(name).is_unspecified
    except ValueError:
        return name.isascii() and len(name) <= 253 and name == name.strip(".")

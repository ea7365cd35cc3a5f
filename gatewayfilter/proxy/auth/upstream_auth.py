"""The filter's own name and password at a parent proxy, from `proxy.upstream_auth_file`."""

from base64 import b64encode
from pathlib import Path

from mitmproxy import http
from mitmproxy.proxy.mode_specs import UpstreamMode

from gatewayfilter.errors import StartupError


def parent_login(file: Path | None) -> bytes:
    """Returns the Proxy-Authorization for a parent proxy (Basic, RFC 7617), `b""` without a file.

    Raises:
        StartupError: the file cannot be read, or does not consist of one line `name:password`.
    """
    if file is None:
        return b""
    try:
        line = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError) as error:
        raise StartupError(f"cannot read proxy.upstream_auth_file {file}: {getattr(error, 'strerror', None) or error}") from error
    if ":" not in line or not line.isprintable():
        raise StartupError(f"proxy.upstream_auth_file {file} has to hold one line: name:password")
    return b"Basic " + b64encode(line.encode())


class ParentLogin:
    """The addon that logs in at the parent proxy: with each plain request, and once a tunnel.

    Args:
        authorization: what `parent_login` returns.
    """

    name = "parentlogin"

    def __init__(self, authorization: bytes) -> None:
        self._authorization = authorization

    def requestheaders(self, flow: http.HTTPFlow) -> None:
        """Logs in with a request that the parent proxy itself answers."""
        if flow.request.scheme == "http" and isinstance(flow.client_conn.proxy_mode, UpstreamMode):
            flow.request.headers["Proxy-Authorization"] = self._authorization

    def http_connect_upstream(self, flow: http.HTTPFlow) -> None:
        """Logs in with a request for a tunnel."""
        flow.request.headers["Proxy-Authorization"] = self._authorization

"""HTTP to the provider of single sign-on: bounded in size and time, without redirections and without proxies of the environment.

The discovery document names the addresses. One on another host than the issuer's must be public, so that a provider cannot
have the filter connect to machines of the LAN.
"""

import json
import socket
import ssl
from collections.abc import Mapping, Sequence
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from gatewayfilter.notify.deadline import Deadline
from gatewayfilter.settings.web import is_loopback, is_provider_url
from gatewayfilter.use_cases.sign_on.failures import SignOnError, SignOnReason

TIMEOUT_S: Final = 5.0
"""Limit for one exchange, from the connection to the last byte."""
LARGEST: Final = 256 << 10
"""Bytes of an answer."""


class ProviderHttp:
    """Fetches JSON from the provider. Threads may share one.

    Args:
        issuer: of the settings.
        ca: certificates that are trusted, `None` for the system's.
        timeout_s: limit for one exchange.
    """

    def __init__(self, issuer: str, ca: Path | None = None, timeout_s: float = TIMEOUT_S) -> None:
        parts = urlsplit(issuer)
        self._host = parts.hostname or ""
        self._is_local = is_loopback(self._host)
        self._ca = ca
        self._timeout_s = timeout_s

    def get(self, url: str, authorization: str = "") -> dict[str, Any]:
        """Returns the JSON object at an address.

        Raises:
            SignOnError: it cannot be fetched, or is none.
        """
        status, found = self._exchange("GET", url, None, {"authorization": authorization} if authorization else {})
        if status != 200:
            raise SignOnError(SignOnReason.PROVIDER, f"{_shown(url)} answers with HTTP {status}")
        return found

    def post(self, url: str, fields: Mapping[str, str], authorization: str = "") -> tuple[int, dict[str, Any]]:
        """Sends a form. Returns the HTTP status and the JSON object of the answer.

        Raises:
            SignOnError: it cannot be sent, or the answer is no object.
        """
        headers = {"content-type": "application/x-www-form-urlencoded"}
        if authorization:
            headers["authorization"] = authorization
        return self._exchange("POST", url, urlencode(fields).encode(), headers)

    def check_url(self, url: object) -> str:
        """Returns an address of the discovery document.

        Raises:
            SignOnError: it is none with TLS; without TLS, issuer and address are on loopback.
        """
        if (
            not isinstance(url, str)
            or not is_provider_url(url)
            or (is_loopback(urlsplit(url).hostname or "") and not self._is_local)
        ):
            raise SignOnError(SignOnReason.PROVIDER, f"the provider names an address that is not used: {str(url)[:200]!r}")
        return url

    def _exchange(self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
        self.check_url(url)
        parts = urlsplit(url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        with Deadline(self._timeout_s) as deadline:
            try:
                with closing(self._connection(parts.scheme, parts.hostname or "", parts.port, deadline)) as connection:
                    fields = {"user-agent": "GatewayFilter", "accept": "application/json", **headers}
                    connection.request(method, target, body, fields)
                    answer = connection.getresponse()
                    content = answer.read(LARGEST + 1)
            except (OSError, HTTPException, ValueError) as error:
                why = "no answer in time" if deadline.passed or isinstance(error, TimeoutError) else _reason(error)
                raise SignOnError(SignOnReason.PROVIDER, f"{_shown(url)}: {why}") from error
        if deadline.passed:
            raise SignOnError(SignOnReason.PROVIDER, f"{_shown(url)}: no answer in time")
        if 300 <= answer.status < 400:
            raise SignOnError(SignOnReason.PROVIDER, f"{_shown(url)} redirects, which is not followed")
        if len(content) > LARGEST:
            raise SignOnError(SignOnReason.PROVIDER, f"{_shown(url)} answers with more than {LARGEST:,} bytes")
        return answer.status, _object(content, url)

    def _connection(self, scheme: str, host: str, port: int | None, deadline: Deadline) -> HTTPConnection:
        """Returns a connection to an address that was checked: the name is not resolved again."""
        number = port or (443 if scheme == "https" else 80)
        found = socket.getaddrinfo(host, number, type=socket.SOCK_STREAM)
        addresses = [entry[4] for entry in found if self._may_connect(host, str(entry[4][0]))]
        if not addresses:
            raise SignOnError(SignOnReason.PROVIDER, f"{host} is another host than the issuer's, and not public")
        plain = self._connected(addresses)
        deadline.watch(plain)
        if scheme == "http":
            connection = HTTPConnection(host, port)
            connection.sock = plain
            return connection
        try:
            context = ssl.create_default_context(cafile=str(self._ca) if self._ca else None)
            secured = context.wrap_socket(plain, server_hostname=host, do_handshake_on_connect=False)
        except OSError:
            plain.close()
            raise
        connection = HTTPSConnection(host, port, context=context)
        connection.sock = secured
        try:
            deadline.watch(secured)
            secured.do_handshake()
        except OSError:
            connection.close()
            raise
        return connection

    def _connected(self, addresses: Sequence[Any]) -> socket.socket:
        """Returns a connection to the first address that takes one."""
        for left, address in zip(range(len(addresses) - 1, -1, -1), addresses, strict=True):
            try:
                found = socket.create_connection(address[:2], timeout=self._timeout_s / len(addresses))
            except OSError:
                if not left:
                    raise
            else:
                found.settimeout(self._timeout_s)
                return found
        raise AssertionError("the last address raises")

    def _may_connect(self, host: str, address: str) -> bool:
        return host == self._host or self._is_local or ip_address(address.partition("%")[0]).is_global


def _object(content: bytes, url: str) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise SignOnError(SignOnReason.PROVIDER, f"{_shown(url)} answers without a JSON object")
    return found


def _shown(url: str) -> str:
    return url.partition("?")[0][:200]


def _reason(error: Exception) -> str:
    """Returns why it failed, without what an exception quotes of the exchange."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is refused: {error.verify_message}"
    return str(error.strerror) if isinstance(error, OSError) and error.strerror else type(error).__name__

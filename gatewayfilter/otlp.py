"""OTLP over HTTP, as JSON: documents for an OpenTelemetry collector.

Source: OpenTelemetry Protocol Specification 1.3, "OTLP/HTTP" and "JSON Protobuf Encoding".
Deviation: what a collector refuses is not sent again.
"""

import json
import logging
import socket
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from gatewayfilter import __version__

SERVICE: Final = "gatewayfilter"
_TIMEOUT_S: Final = 10.0
_OK: Final = range(200, 300)
_log = logging.getLogger(__name__)


class OtlpClient:
    """Sends documents of one kind to a collector.

    Args:
        endpoint: `http://127.0.0.1:4318`.
        path: `/v1/metrics` or `/v1/traces`, which is appended, as the specification has it.
        what: the documents' name in the log.
    """

    def __init__(self, endpoint: str, path: str, what: str) -> None:
        self._parts = urlsplit(endpoint)
        self._path = path
        self._what = what
        self._failure = ""

    def send(self, document: Mapping[str, Any]) -> bool:
        """Sends a document. Returns whether the collector took it; a failure is logged when it begins."""
        failure = self._post(json.dumps(document).encode())
        if failure and not self._failure:
            _log.warning("%s cannot be sent to %s: %s", self._what, self._parts.netloc, failure)
        elif self._failure and not failure:
            _log.info("%s are sent to %s again", self._what, self._parts.netloc)
        self._failure = failure
        return not failure

    def _post(self, body: bytes) -> str:
        """Returns why a document was not taken, `""` when it was."""
        from http.client import HTTPConnection, HTTPException, HTTPSConnection  # noqa: PLC0415  a megabyte; few workers send

        parts = self._parts
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        connection = kind(parts.hostname or "", parts.port, timeout=_TIMEOUT_S)
        try:
            connection.request("POST", parts.path.rstrip("/") + self._path, body, {"Content-Type": "application/json"})
            status = connection.getresponse().status
        except (OSError, HTTPException) as error:
            return str(error) or type(error).__name__
        finally:
            connection.close()
        return "" if status in _OK else f"HTTP status {status}"


def resource() -> dict[str, Any]:
    """Returns the `Resource` of this program: its name and version, and the machine's name."""
    named = {"service.name": SERVICE, "service.version": __version__, "host.name": socket.gethostname()}
    return {"attributes": attributes(named)}


def scope() -> dict[str, str]:
    """Returns the `InstrumentationScope` of this program."""
    return {"name": SERVICE, "version": __version__}


def attributes(named: Mapping[str, str | int]) -> list[dict[str, Any]]:
    """Returns `KeyValue`s: texts, and integers, which JSON has as text."""
    return [
        {"key": name, "value": {"stringValue": value} if isinstance(value, str) else {"intValue": str(value)}}
        for name, value in named.items()
    ]


def nanoseconds(seconds: float) -> str:
    """Returns Unix seconds as nanoseconds."""
    return str(int(seconds * 1e9))

"""Readers of what probes record of HTTP: Zeek's http.log, and the fields that tshark prints of a packet capture.

Source: [ad-traffic §1]: the probe mirrors traffic, and a record has the addresses, ports, time and protocol, host and URI.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any, Final

from gatewayfilter.scaleout.stream.traffic.lines import NotARecordError, RecordReader, SkippedLineError
from gatewayfilter.scaleout.stream.traffic.media_types import type_of

TSHARK_FIELDS: Final = (
    "frame.time_epoch", "ip.src", "tcp.srcport", "ip.dst", "tcp.dstport", "ip.proto", "http.host", "http.request.uri",
    "http.request.method", "http.referer",
)  # fmt: skip
"""Fields in the order in which they are read: `tshark -T fields -e …`; the last two may be missing."""

_ESCAPED = re.compile(r"\\x([0-9a-fA-F]{2})")
_PROTOCOLS: Final = {"6": "tcp", "17": "udp"}


class ZeekReader(RecordReader):
    """Reads Zeek's http.log: tab-separated with its `#fields` line, or JSON objects.

    The order of fields is that of the last `#fields` line, at first Zeek's own.
    """

    def __init__(self) -> None:
        self._fields: tuple[str, ...] = (
            "ts", "uid", "id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p", "trans_depth", "method", "host", "uri", "referrer",
            "version", "user_agent", "origin", "request_body_len", "response_body_len", "status_code", "status_msg",
            "info_code", "info_msg", "tags", "username", "password", "proxied", "orig_fuids", "orig_filenames",
            "orig_mime_types", "resp_fuids", "resp_filenames", "resp_mime_types",
        )  # fmt: skip

    def record(self, line: bytes) -> dict[str, Any]:
        """Returns the fields of a line.

        Raises:
            NotARecordError: it is none of http.log, or has no host.
            SkippedLineError: it is blank or a header.
        """
        text = line.decode("utf-8", "replace").strip("\r\n")
        if not text.strip():
            raise SkippedLineError
        if text.startswith("#"):
            if text.startswith("#fields\t"):
                self._fields = tuple(text.split("\t")[1:201])
            raise SkippedLineError
        found = self._object(text) if text.startswith("{") else self._row(text)
        host, uri = _text(found, "host"), _text(found, "uri") or "/"
        method = _text(found, "method") or "GET"
        if not host and "://" not in uri:
            raise NotARecordError("no host")
        try:
            port = int(found["id.resp_p"]) if found.get("id.resp_p") is not None else None
            types = found.get("resp_mime_types") or ""
            return {
                "time": _moment(found.get("ts")),
                "client": _text(found, "id.orig_h"),
                "client_port": int(found["id.orig_p"]) if found.get("id.orig_p") is not None else None,
                "server": _text(found, "id.resp_h"),
                "server_port": port,
                "protocol": "tcp",
                "method": method,
                "url": url_of(host or "", port, uri, method),
                "source": _text(found, "referrer"),
                "type": type_of(types[0] if isinstance(types, list) else str(types).partition(",")[0]),
                "status": int(found["status_code"]) if found.get("status_code") is not None else None,
                "bytes": int(found["response_body_len"]) if found.get("response_body_len") is not None else None,
            }
        except (ValueError, TypeError, OverflowError) as error:
            raise NotARecordError("a time, port, status or size is no number") from error

    def _row(self, text: str) -> dict[str, Any]:
        values = text.split("\t")
        if len(values) != len(self._fields):
            raise NotARecordError(f"{len(values)} fields in place of {len(self._fields)}")
        row = zip(self._fields, values, strict=True)
        return {name: _unescaped(value) for name, value in row if value not in {"-", "(empty)"}}

    @staticmethod
    def _object(text: str) -> dict[str, Any]:
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise NotARecordError("not JSON") from error
        return found if isinstance(found, dict) else {}


class TsharkReader(RecordReader):
    """Reads the fields `TSHARK_FIELDS` of HTTP requests in a packet capture, with tabs between them."""

    def record(self, line: bytes) -> dict[str, Any]:
        """Returns the fields of a line.

        Raises:
            NotARecordError: it has too few, or no host.
            SkippedLineError: it is blank, or of a packet that begins no request.
        """
        text = line.decode("utf-8", "replace").strip("\r\n")
        if not text.strip():
            raise SkippedLineError
        values = text.split("\t")
        if not 8 <= len(values) <= len(TSHARK_FIELDS):  # the last two may be missing
            raise NotARecordError(f"{len(values)} fields in place of 8 to {len(TSHARK_FIELDS)}")
        if not any(values[6:]):
            raise SkippedLineError
        time, client, client_port, server, server_port, protocol, host, uri, *more = values
        method, source = [*more, "", ""][:2]
        if not host and "://" not in uri:
            raise NotARecordError("no host")
        try:
            port = int(server_port)
            return {
                "time": float(time),
                "client": client,
                "client_port": int(client_port),
                "server": server,
                "server_port": port,
                "protocol": _PROTOCOLS.get(protocol, protocol),
                "method": method or "GET",
                "url": url_of(host, port, uri, method),
                "source": source or None,
            }
        except ValueError as error:
            raise NotARecordError("a time or port is no number") from error


def url_of(host: str, port: int | None, uri: str, method: str = "GET") -> str:
    """Returns the URL of a request that was seen unencrypted."""
    if method == "CONNECT":
        return f"https://{uri}/"
    if "://" in uri[:8]:
        return uri
    if ":" in host and host.count(":") > 1 and not host.startswith("["):
        host = f"[{host}]"
    has_port = host.rpartition(":")[2].isdecimal() and not host.endswith("]") and ":" in host
    netloc = host if has_port or port in {None, 80} else f"{host}:{port}"
    return f"http://{netloc}{uri if uri.startswith('/') else '/' + uri}"


def _text(found: dict[str, Any], name: str) -> str | None:
    value = found.get(name)
    return value if isinstance(value, str) and value else None


def _moment(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, str) and "T" in value:
        return datetime.fromisoformat(value).timestamp()
    return float(str(value))


def _unescaped(value: str) -> str:
    r"""Returns a value of a tab-separated log without Zeek's escapes (`\x09`)."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), value) if "\\x" in value else value

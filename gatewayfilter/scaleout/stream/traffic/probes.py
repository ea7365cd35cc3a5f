"""Reader of what a probe records of HTTP: the fields that tshark prints of a packet capture; and URLs of such records.

Source: [ad-traffic §1]: the probe mirrors traffic, and a record has the addresses, ports, time and protocol, host and URI.
"""

from __future__ import annotations

from typing import Any, Final

from gatewayfilter.scaleout.stream.traffic.lines import NotARecordError, RecordReader, SkippedLineError

TSHARK_FIELDS: Final = (
    "frame.time_epoch", "ip.src", "tcp.srcport", "ip.dst", "tcp.dstport", "ip.proto", "http.host", "http.request.uri",
    "http.request.method", "http.referer",
)  # fmt: skip
"""Fields in the order in which they are read: `tshark -T fields -e …`; the last two may be missing."""

_TLS: Final = 443
_PROTOCOLS: Final = {"6": "tcp", "17": "udp"}


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
        host = host or (server if uri else "")  # a request of HTTP/1.0 without the header Host
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
    """Returns the URL of a request that was seen unencrypted, or by a probe with the keys where it went to the port of TLS.

    Raises:
        NotARecordError: it is a CONNECT to no host.
    """
    if method == "CONNECT":
        target = uri.partition(" ")[0]
        if not target or "/" in target:
            raise NotARecordError("no host")
        return f"https://{target}/"
    if "://" in uri[:8]:
        return uri
    if ":" in host and host.count(":") > 1 and not host.startswith("["):
        host = f"[{host}]"
    has_port = host.rpartition(":")[2].isdecimal() and not host.endswith("]") and ":" in host
    if port == _TLS and not has_port:
        return f"https://{host}{uri if uri.startswith('/') else '/' + uri}"
    netloc = host if has_port or port in {None, 80} else f"{host}:{port}"
    return f"http://{netloc}{uri if uri.startswith('/') else '/' + uri}"

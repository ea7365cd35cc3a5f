"""Reader of what a probe records of HTTP: the fields that tshark prints of a packet capture; and URLs of such records.

Source: [ad-traffic §1]: the probe mirrors traffic, and a record has the addresses, ports, time and protocol, host and URI.
"""

from __future__ import annotations

from typing import Any, Final

from gatewayfilter.scaleout.stream.traffic.lines import NotARecordError, RecordReader, SkippedLineError, text_of

TSHARK_FIELDS: Final = (
    "frame.time_epoch", "ip.src", "tcp.srcport", "ip.dst", "tcp.dstport", "ip.proto", "http.host", "http.request.uri",
    "http.request.method", "http.referer", "ipv6.src", "ipv6.dst", "ipv6.nxt",
)  # fmt: skip
"""Fields in the order in which they are read: `tshark -T fields -e …`; those of IPv6, referrer and method may be missing."""
_LENGTHS: Final = (8, 9, 10, len(TSHARK_FIELDS))

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
        text = text_of(line).strip("\r\n")
        if not text.strip():
            raise SkippedLineError
        values = text.split("\t")
        if len(values) not in _LENGTHS:
            raise NotARecordError(f"{len(values)} fields in place of {_LENGTHS[0]} to {_LENGTHS[-1]}")
        values += [""] * (len(TSHARK_FIELDS) - len(values))
        time, client, client_port, server, server_port, protocol, host, uri, method, source, *by_6 = values
        if not (host or uri or method or source):
            raise SkippedLineError
        if "," in method:  # tshark puts a comma between values of one packet, and none of these has one of its own
            raise NotARecordError("several requests in one packet")
        if "," in host:
            raise NotARecordError("several hosts")
        client, server, protocol = (
            _inner(four) or _inner(six) for four, six in zip((client, server, protocol), by_6, strict=True)
        )
        host = host or (server if uri else "")  # a request of HTTP/1.0 without the header Host
        if not host and "://" not in uri:
            raise NotARecordError("no host")
        try:
            port = int(server_port)
            return {
                "time": float(time),
                "client": client or None,
                "client_port": int(client_port),
                "server": server or None,
                "server_port": port,
                "protocol": _PROTOCOLS.get(protocol, protocol or "tcp"),
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
    if host.count(":") > 1 and not host.startswith("["):
        host = f"[{host}]"
    has_port = ":" in host and host.rpartition(":")[2].isdecimal()
    if port == _TLS and not has_port:
        return f"https://{host}{uri if uri.startswith('/') else '/' + uri}"
    netloc = host if has_port or port in {None, 80} else f"{host}:{port}"
    return f"http://{netloc}{uri if uri.startswith('/') else '/' + uri}"


def _inner(values: str) -> str:
    """Returns the last one of several values of a packet: of a tunnel, that of the connection inside."""
    return values.rpartition(",")[2]

"""Readers of squid's access logs: its own format, and the combined format, which has the referring page."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from gatewayfilter.scaleout.stream.traffic.lines import NotARecordError, RecordReader, SkippedLineError, text_of
from gatewayfilter.scaleout.stream.traffic.media_types import type_of

_COMBINED = re.compile(
    r'(\S+) \S+ \S+ \[([^\]]{20,32})\] "(\S{1,64}) (\S.*?)(?: [A-Z]{1,8}/[\d.]{1,8})?" (\d{1,9}) (\d{1,18}|-)(?: "([^"]*)")?'
)


class SquidReader(RecordReader):
    """Reads squid's native format: `time elapsed client code/status bytes method URL user hierarchy/server type`.

    Source: squid.conf, logformat squid.
    """

    def record(self, line: bytes) -> dict[str, Any]:
        """Returns the fields of a line.

        Raises:
            NotARecordError: it has too few of them, or no URL.
            SkippedLineError: it is blank.
        """
        words = text_of(line).strip().split(maxsplit=6)
        if not words:
            raise SkippedLineError
        tail = words[-1].rsplit(maxsplit=3)
        if len(words) < 7 or len(tail) < 4:  # as above
            raise NotARecordError("fewer than the ten fields of squid's format")
        time, _, client, result, size, method, _ = words
        target, _, peer, media = tail  # spaces in a URL stay with `uri_whitespace allow`
        try:
            return {
                "time": float(time),
                "client": client,
                "server": peer.partition("/")[2].strip("-") or None,
                "protocol": "tcp",
                "method": method,
                "url": target_url(method, target),
                "type": type_of(media),
                "status": int(result.rpartition("/")[2]),
                "bytes": int(size),
            }
        except ValueError as error:
            raise NotARecordError("a time, status or size is no number") from error


class CombinedReader(RecordReader):
    """Reads the combined format of squid, Apache and nginx, with absolute URLs.

    Source: squid.conf, logformat combined.
    """

    def record(self, line: bytes) -> dict[str, Any]:
        """Returns the fields of a line.

        Raises:
            NotARecordError: it is not of this format.
            SkippedLineError: it is blank.
        """
        text = text_of(line).strip()
        if not text:
            raise SkippedLineError
        found = _COMBINED.match(text)
        if found is None:
            raise NotARecordError("not the combined format")
        client, moment, method, target, status, size, source = found.groups()
        try:
            time = datetime.strptime(moment, "%d/%b/%Y:%H:%M:%S %z").timestamp()
        except (ValueError, OverflowError) as error:
            raise NotARecordError("the time cannot be read") from error
        return {
            "time": time,
            "client": client,
            "protocol": "tcp",
            "method": method,
            "url": target_url(method, target),
            "source": None if source in {None, "-", ""} else source,
            "status": int(status),
            "bytes": None if size == "-" else int(size),
        }


def target_url(method: str, target: str) -> str:
    """Returns the URL of a request's target; of a CONNECT it is the root of the host.

    Raises:
        NotARecordError: it is no absolute URL.
    """
    if method == "CONNECT":
        return f"https://{target}/"
    if "://" not in target:
        raise NotARecordError(f"no absolute URL: {target[:100]}")
    return target

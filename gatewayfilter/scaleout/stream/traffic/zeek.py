"""Reader of what Zeek records of HTTP: its http.log, tab-separated or JSON."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any, Final

from gatewayfilter.scaleout.stream.traffic.lines import NotARecordError, RecordReader, SkippedLineError
from gatewayfilter.scaleout.stream.traffic.media_types import type_of
from gatewayfilter.scaleout.stream.traffic.probes import url_of

_ESCAPED: Final = re.compile(r"(?:\\x[0-9a-fA-F]{2})+")
_ESCAPED_IN_ROWS: Final = re.compile(r"\\\\|(?:\\x[0-9a-fA-F]{2})+")
_NO_TEXT: Final = re.compile("[\udc80-\udcff]")
_LONGEST_MARK: Final = 64
"""Characters of a separator, or of the mark of a value that is not set."""
_MOST_FIELDS: Final = 200
_MILLISECONDS: Final = 1e11
"""A time from here on is in milliseconds (`LogAscii::json_timestamps`): in seconds it would be after the year 5000."""


class ZeekReader(RecordReader):
    r"""Reads Zeek's http.log.

    Columns, their separator and the marks of values that are not set are those of the last header: its lines begin with `#`, or
    it is one line with the names of the fields (`LogAscii::tsv`). Before any header they are Zeek's own. A request without the
    header Host has the address of its server in its place. Bytes that Zeek wrote as `\xNN` are these bytes again; those that
    are no UTF-8 stand as `%NN`.
    """

    def __init__(self) -> None:
        self._separator = "\t"
        self._not_set = {"unset": "-", "empty": "(empty)"}
        self._fields: tuple[str, ...] = (
            "ts", "uid", "id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p", "trans_depth", "method", "host", "uri", "referrer",
            "version", "user_agent", "origin", "request_body_len", "response_body_len", "status_code", "status_msg",
            "info_code", "info_msg", "tags", "username", "password", "proxied", "orig_fuids", "orig_filenames",
            "orig_mime_types", "resp_fuids", "resp_filenames", "resp_mime_types",
        )  # fmt: skip

    def record(self, line: bytes) -> dict[str, Any]:
        """Returns the fields of a line.

        Raises:
            NotARecordError: it is none of http.log, or tells of no request.
            SkippedLineError: it is blank or a header.
        """
        text = line.decode("utf-8", "replace").strip("\r\n")
        if not text.strip():
            raise SkippedLineError
        if text.startswith("#"):
            self._take_header(text)
            raise SkippedLineError
        found = _object(text) if text.startswith("{") else self._row(text)
        method, host, uri = (_text(found, name) for name in ("method", "host", "uri"))
        if not (method or host or uri):  # an answer whose request was not seen
            raise NotARecordError("no request")
        server = _text(found, "id.resp_h")
        host = host or server
        if not host and "://" not in (uri or ""):
            raise NotARecordError("no host")
        try:
            port = _number(found, "id.resp_p")
            types = found.get("resp_mime_types") or ""
            return {
                "time": _moment(found.get("ts")),
                "client": _text(found, "id.orig_h"),
                "client_port": _number(found, "id.orig_p"),
                "server": server,
                "server_port": port,
                "protocol": "tcp",
                "method": method or "GET",
                "url": url_of(host or "", port, uri or "/", method or "GET"),
                "source": _text(found, "referrer"),
                "type": type_of(types[0] if isinstance(types, list) else str(types).partition(",")[0]),
                "status": _number(found, "status_code"),
                "bytes": _number(found, "response_body_len"),
            }
        except (ValueError, TypeError, OverflowError) as error:
            raise NotARecordError("a time, port, status or size is no number") from error

    def _take_header(self, text: str) -> None:
        if text.startswith("#separator "):
            self._separator = _unescaped(text[11 : 11 + _LONGEST_MARK], _ESCAPED) or "\t"
            return
        name, _, value = text.partition(self._separator)
        if name == "#fields":
            self._fields = _names(value.split(self._separator))
        elif name in {"#unset_field", "#empty_field"}:
            self._not_set[name[1:6]] = value[:_LONGEST_MARK]

    def _row(self, text: str) -> dict[str, Any]:
        values = text.split(self._separator)
        if "uri" in values and ("host" in values or "method" in values):
            self._fields = _names(values)
            raise SkippedLineError
        if len(values) != len(self._fields):
            raise NotARecordError(f"{len(values)} fields in place of {len(self._fields)}")
        not_set = self._not_set.values()
        row = zip(self._fields, values, strict=True)
        return {name: _unescaped(value, _ESCAPED_IN_ROWS) for name, value in row if value and value not in not_set}


def _names(names: list[str]) -> tuple[str, ...]:
    """Returns names of fields as Zeek has them by itself, where another `Log::default_scope_sep` is set, too."""
    return tuple(re.sub(r"^id.(orig|resp)_([hp])$", r"id.\1_\2", name) for name in names[:_MOST_FIELDS])


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NotARecordError("not JSON") from error
    if not isinstance(found, dict):
        return {}
    names = found if "id.orig_h" in found else _names([*found])
    return {
        name: _unescaped(value, _ESCAPED) if isinstance(value, str) else value
        for name, value in zip(names, found.values(), strict=False)
    }


def _text(found: dict[str, Any], name: str) -> str | None:
    value = found.get(name)
    return value if isinstance(value, str) and value else None


def _number(found: dict[str, Any], name: str) -> int | None:
    value = found.get(name)
    return None if value is None else int(value)


def _moment(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, str) and "T" in value:
        return datetime.fromisoformat(value).timestamp()
    moment = float(str(value))
    return moment / 1000 if abs(moment) >= _MILLISECONDS else moment


def _unescaped(value: str, escaped: re.Pattern[str]) -> str:
    """Returns a text without Zeek's escapes: of bytes, and in rows of the backslash."""
    return escaped.sub(_plain, value) if "\\" in value else value


def _plain(found: re.Match[str]) -> str:
    if found[0] == "\\\\":
        return "\\"
    text = bytes.fromhex(found[0].replace("\\x", "")).decode("utf-8", "surrogateescape")
    return _NO_TEXT.sub(lambda byte: f"%{ord(byte[0]) - 0xDC00:02X}", text)

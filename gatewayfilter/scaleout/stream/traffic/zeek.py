"""Reader of what Zeek records of HTTP: its http.log, tab-separated or JSON."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from gatewayfilter.scaleout.stream.traffic.lines import LONGEST, NotARecordError, RecordReader, SkippedLineError, text_of
from gatewayfilter.scaleout.stream.traffic.media_types import type_of
from gatewayfilter.scaleout.stream.traffic.probes import url_of

if TYPE_CHECKING:
    from collections.abc import Iterable

_ESCAPED: Final = re.compile(r"(?:\\x[0-9a-fA-F]{2})+")
_ESCAPED_IN_ROWS: Final = re.compile(r"\\\\|(?:\\x[0-9a-fA-F]{2})+")
_LONGEST_MARK: Final = 64
"""Characters of a separator, or of the mark of a value that is not set."""
_MOST_FIELDS: Final = 200
_MILLISECONDS: Final = 1e11
"""A time from here on is in milliseconds (`LogAscii::json_timestamps`): in seconds it would be after the year 5000."""


HEADERS: Final = ("#separator", "#unset_field", "#empty_field", "#fields")
"""Headers that tell how the lines behind them are read, in the order in which they must stand."""


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
        text = text_of(line).strip("\r\n")
        if not text.strip() or self.header(text):
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

    def header(self, text: str) -> str:
        """Reads the lines behind as this one tells, if it is a header. Returns what it tells (`HEADERS`), `""` for no header."""
        if not text.startswith("#"):
            if "uri" not in text or text.startswith("{"):
                return ""
            names = text.split(self._separator)
            if "uri" not in names or not {"host", "method"} & {*names}:
                return ""
            self._fields = _names(names)
            return "#fields"
        mark = text.removeprefix("#separator ")
        if mark != text:
            self._separator = _unescaped(mark[:_LONGEST_MARK], _ESCAPED) or "\t"
            return "#separator"
        name, _, value = text.partition(self._separator)
        if name == "#fields":
            self._fields = _names(value.split(self._separator))
        elif name in {"#unset_field", "#empty_field"}:
            self._not_set[name[1:6]] = value[:_LONGEST_MARK]
        return name

    def _row(self, text: str) -> dict[str, Any]:
        values = text.split(self._separator)
        if len(values) != len(self._fields):
            raise NotARecordError(f"{len(values)} fields in place of {len(self._fields)}")
        not_set = self._not_set.values()
        row = zip(self._fields, values, strict=True)
        return {name: _unescaped(value, _ESCAPED_IN_ROWS) for name, value in row if value and value not in not_set}


class ZeekHeaders:
    """Keeps the headers that hold for the lines behind them, so that these can be read apart."""

    def __init__(self) -> None:
        self._reader = ZeekReader()
        self._kept: dict[str, bytes] = {}

    @property
    def lines(self) -> list[bytes]:
        """The header lines that hold now."""
        return [self._kept[name] for name in HEADERS if name in self._kept]

    def note(self, lines: Iterable[bytes]) -> None:
        """Reads further lines. Costs some 0.1 us for each that is no header."""
        for line in lines:
            if (line.startswith(b"#") or b"uri" in line) and (name := self._reader.header(text_of(line[:LONGEST]).strip("\r\n"))):
                self._kept[name] = line


def _names(names: list[str]) -> tuple[str, ...]:
    """Returns names of fields as Zeek has them by itself, where another `Log::default_scope_sep` is set, too."""
    return tuple(re.sub(r"^id.(orig|resp)_([hp])$", r"id.\1_\2", name) for name in names[:_MOST_FIELDS])


def _object(text: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(text)  # the text begins with a brace
    except (ValueError, RecursionError) as error:
        raise NotARecordError("not JSON") from error
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
    return text_of(bytes.fromhex(found[0].replace("\\x", "")))

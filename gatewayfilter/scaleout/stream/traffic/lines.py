"""Lines of recorded traffic as records; lines that hold no request are set aside with the reason.

Single lines are read without pyarrow, which `gatewayfilter match` does not need; batches of them are Arrow's.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

LONGEST: Final = 1 << 20
"""Bytes of the longest line that is read."""

FIELDS: Final = {
    "time": "double", "client": "string", "client_port": "int32", "server": "string", "server_port": "int32",
    "protocol": "string", "method": "string", "url": "string", "source": "string", "type": "string", "status": "int32",
    "bytes": "int64",
}  # fmt: skip
"""Names and types of the fields of `RECORD`."""

_NO_TEXT: Final = re.compile("[\udc80-\udcff]")
_read_json = json.JSONDecoder().decode


class NotARecordError(Exception):
    """A line holds no traffic record; the text is the reason."""


class SkippedLineError(Exception):
    """A line holds none on purpose: blank, a comment or a header."""


@dataclass(frozen=True, slots=True)
class ReadLines:
    """The records of lines.

    Attributes:
        batch: the records, with the fields of `RECORD`.
        rows: the place of each record's line among those given.
        bad: place and reason of each line without a record.
        braces: int32[lines]: where the brace is in a line of JSON in front of which the members of `VERDICT` can be added, -1
            where that is not known; `None` where it is known of none.
    """

    batch: pa.RecordBatch
    rows: Sequence[int]
    bad: list[tuple[int, str]] = field(default_factory=list)
    braces: NDArray[np.int32] | None = None


def text_of(line: bytes) -> str:
    """Returns the text of a line in UTF-8; bytes that are none stand as `%NN`, as they would in a URL."""
    try:
        return line.decode()
    except UnicodeDecodeError:
        return _NO_TEXT.sub(lambda byte: f"%{ord(byte[0]) - 0xDC00:02X}", line.decode(errors="surrogateescape"))


class LineReader(Protocol):
    """Reads lines of one format. It may keep what headers tell of the lines behind them."""

    def record(self, line: bytes) -> dict[str, Any]:
        """Returns the fields of a line, named as in `RECORD`.

        Raises:
            NotARecordError: it has no record.
            SkippedLineError: it is no record on purpose.
        """
        ...

    def read(self, lines: Sequence[bytes]) -> ReadLines:
        """Returns the records of lines; never raises for any line."""
        ...


class RecordReader:
    """Reads one line after the other. A subclass reads one."""

    def record(self, line: bytes) -> dict[str, Any]:
        """Returns the fields of a line, named as in `RECORD`.

        Raises:
            NotARecordError: it has no record.
            SkippedLineError: it is no record on purpose.
        """
        raise NotImplementedError

    def read(self, lines: Sequence[bytes]) -> ReadLines:
        """Returns the records of lines; never raises for any line."""
        from gatewayfilter.scaleout.stream.traffic.arrow_lines import batch_of  # noqa: PLC0415  # as at the top

        found: list[dict[str, Any]] = []
        rows: list[int] = []
        bad: list[tuple[int, str]] = []
        for row, line in enumerate(lines):
            try:
                found.append(checked(self.record(line[: LONGEST + 1])))
            except SkippedLineError:
                continue
            except NotARecordError as error:
                bad.append((row, str(error)[:300]))
                continue
            rows.append(row)
        return ReadLines(batch_of(found), rows, bad)


class JsonReader(RecordReader):
    """Reads JSON objects with the fields of `RECORD`; other fields are passed over.

    Simple ones are read by compiled code, the others by Arrow's own parser together; with a bad line among those, each of them
    is read by itself.
    """

    def read(self, lines: Sequence[bytes]) -> ReadLines:
        """Returns the records of lines; never raises for any line."""
        from gatewayfilter.scaleout.stream.traffic.json_scan import merged, scan  # noqa: PLC0415  # as at the top

        scanned = scan(lines)
        if scanned is None:
            return self._parsed(lines)
        if not scanned.left:
            return ReadLines(scanned.batch, range(len(lines)), braces=scanned.braces)
        rest = self._parsed([lines[row] for row in scanned.left])
        batch, rows = merged(scanned, rest.batch, rest.rows)
        return ReadLines(batch, rows, [(scanned.left[row], why) for row, why in rest.bad], scanned.braces)

    def _parsed(self, lines: Sequence[bytes]) -> ReadLines:
        from gatewayfilter.scaleout.stream.traffic.arrow_lines import parsed  # noqa: PLC0415  # as at the top

        blob = b"\n".join(lines)
        if blob.count(b"\n") == len(lines) - 1:
            batch = parsed(blob)
            whole = batch is not None and batch.num_rows == len(lines) and not batch["url"].null_count
            if whole and max(map(len, lines)) <= LONGEST:
                return ReadLines(batch, range(len(lines)))
        return super().read(lines)  # one by one, to find those that are bad

    def record(self, line: bytes) -> dict[str, Any]:
        """Returns the fields of a JSON object.

        Raises:
            NotARecordError: it is none.
            SkippedLineError: the line is blank.
        """
        bare = line.strip().removeprefix(b"\xef\xbb\xbf")
        if not bare:
            raise SkippedLineError
        try:
            found = _read_json(bare.decode())
        except (ValueError, RecursionError) as error:
            raise NotARecordError("not JSON") from error
        if not isinstance(found, dict):
            raise NotARecordError("not an object")
        return {name: found[name] for name in FIELDS if found.get(name) is not None}


def checked(record: dict[str, Any]) -> dict[str, Any]:
    """Returns a record whose fields have the types of `RECORD`.

    Raises:
        NotARecordError: there is no URL, or a field cannot be of its type.
    """
    if not isinstance(record.get("url"), str):
        raise NotARecordError("no url")
    if len(record["url"]) > LONGEST // 2:
        raise NotARecordError("line too long")
    for name, value in record.items():
        if value is not None and (why := _fault(name, value)):
            raise NotARecordError(f"{name} {why}")
    return record


def _fault(name: str, value: object) -> str:
    """Returns why a value cannot be of the type of its field, `""` when it can."""
    kind = FIELDS[name]
    if kind == "string":
        if not isinstance(value, str):
            return "is no text"
        return "" if value.isascii() or value.encode("utf-8", "replace").decode() == value else "is no Unicode text"
    if isinstance(value, bool) or not isinstance(value, int | float) or (isinstance(value, float) and name != "time"):
        return "is no number"
    limit = 1e12 if name == "time" else 1 << (31 if kind == "int32" else 63)  # the year 30,000
    return "" if -limit < value < limit else "is out of range"

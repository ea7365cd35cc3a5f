"""Lines of access logs and probes, decided in batches: `match --format squid` and the like."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, BinaryIO

from gatewayfilter.cli.bulk.json_lines import BadLineError, Batch, BulkLines, shown_line
from gatewayfilter.cli.filter.jsonl_requests import verdict_text
from gatewayfilter.errors import UrlError
from gatewayfilter.scaleout.stream.traffic.formats import TrafficFormat, reader_of
from gatewayfilter.scaleout.stream.traffic.lines import NotARecordError, SkippedLineError, checked
from gatewayfilter.scaleout.stream.traffic.zeek import ZeekHeaders

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gatewayfilter.scaleout.stream.deciding import RecordDecider


class TrafficLines(BulkLines):
    """Decides the requests of lines; the answer is the record as JSON, with the verdict.

    Args:
        decider: decides them.
        form: their format.
        apart: lines without a verdict are kept apart.
    """

    def __init__(self, decider: RecordDecider, form: TrafficFormat, *, apart: bool = False) -> None:
        super().__init__(apart=apart)
        self._verdict = decider.verdict
        self._record = reader_of(form).record
        self._has_headers = form is TrafficFormat.ZEEK

    def batches(self, stream: BinaryIO) -> Iterator[Batch]:
        """Yields the lines of the input; each batch of Zeek's begins with the headers that hold for it."""
        found = super().batches(stream)
        return _with_headers(found) if self._has_headers else found

    def _line(self, line: bytes) -> bytes:
        if len(line) > self.max_line:
            return self._without_answer(line, shown_line(line), BadLineError("line too long"))
        try:
            record = checked(self._record(line))
            verdict = self._verdict(
                record["url"], record.get("source"), record.get("type"), record.get("method") or "GET", record.get("client") or ""
            )
        except SkippedLineError:
            return b""
        except NotARecordError as error:
            return self._without_answer(line, shown_line(line), BadLineError(_kind_of(str(error)), str(error)[:300]))
        except UrlError as error:
            return self._without_answer(line, shown_line(line), BadLineError("not a URL", str(error)[:300]))
        self._counts[verdict.action, verdict.reason] += 1
        fields = {name: value for name, value in record.items() if value is not None}
        return json.dumps(fields)[:-1].encode() + b", " + verdict_text(verdict).encode()


def _kind_of(why: str) -> str:
    """Returns the kind of a fault, for counting: without what stands in the line."""
    return why.partition(":")[0].lstrip("0123456789 ")


def _with_headers(batches: Iterator[Batch]) -> Iterator[Batch]:
    """Yields batches that can be read apart from each other: each begins with the headers that hold for its first line."""
    headers = ZeekHeaders()
    for batch in batches:
        held = headers.lines
        headers.note(batch.lines)
        yield Batch(batch.first - len(held), [*held, *batch.lines], batch.size) if held else batch

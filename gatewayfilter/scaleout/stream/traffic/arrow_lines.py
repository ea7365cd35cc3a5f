"""Record batches of lines: by Arrow's own parser of JSON, or of the fields of single lines."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyarrow import json as arrow_json

from gatewayfilter.scaleout.stream.batch import RECORD

if TYPE_CHECKING:
    from collections.abc import Sequence

_PARSING: Final = arrow_json.ParseOptions(explicit_schema=RECORD, unexpected_field_behavior="ignore")
_LEAST_BLOCK: Final = 65_536
"""Bytes of a block of Arrow's reader: all that is read is one."""
_OBJECT: Final = re.compile(rb"\s*\{")


def batch_of(records: Sequence[dict[str, Any]]) -> pa.RecordBatch:
    """Returns records as a batch; their fields have the types of `RECORD`."""
    return pa.RecordBatch.from_pylist(records, schema=RECORD)


def parsed(blob: bytes) -> pa.RecordBatch | None:
    """Returns lines of JSON objects as a batch; None when one of them cannot be read."""
    if not _OBJECT.match(blob):  # a `null` that comes first ends the process: pyarrow 26.0.1
        return None
    try:
        reading = arrow_json.ReadOptions(use_threads=False, block_size=max(len(blob), _LEAST_BLOCK))
        batches = arrow_json.read_json(io.BytesIO(blob), reading, _PARSING).combine_chunks().to_batches()
        batch = batches[0] if batches else batch_of([])
        batch.validate(full=True)
    except (pa.ArrowException, UnicodeDecodeError):
        return None
    return batch

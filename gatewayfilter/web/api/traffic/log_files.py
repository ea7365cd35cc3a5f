"""`/api/v1/log/export` and `/api/v1/log/purge`: the log as a file, and its removal; the erasure of a client."""

import csv
import io
import json
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from fastapi import Path, Query
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from gatewayfilter.use_cases.moments import read_moment
from gatewayfilter.use_cases.traffic.client_erasure import erase_client
from gatewayfilter.use_cases.traffic.log_csv import Separator, safe_cell
from gatewayfilter.use_cases.traffic.log_files import COLUMNS, exported_rows, purge_log
from gatewayfilter.web.access.changes import record
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Admin, Viewer
from gatewayfilter.web.access.log_conditions import Conditions
from gatewayfilter.web.api.shared_models import RemovedModel
from gatewayfilter.web.routers import ApiRouter

router = ApiRouter(tags=["log"])

_BATCH = 500
"""Rows that are written at once."""


class Purge(BaseModel):
    """Which decisions are removed; at least one of the two."""

    model_config = ConfigDict(extra="forbid")

    before: Annotated[str, Field(max_length=50, description="Older than this: `30d`, `today`, `2030-01-31`; empty for all.")] = ""
    client: Annotated[str, Field(max_length=200, description="Of this client: name, address or `user:NAME`; empty for all.")] = ""


class Erasure(BaseModel):
    """How a client is erased."""

    model_config = ConfigDict(extra="forbid")

    keep: Annotated[bool, Field(description="The client and its rules stay.")] = False


class ErasedModel(BaseModel):
    """What was erased."""

    counts: Annotated[
        dict[str, int], Field(description="Decisions, requests, messages, links, days of quotas, devices, clients.")
    ]
    backups: Annotated[list[str], Field(description="Files of the state folder that still hold it.")]


@router.get("/log/export", operation_id="export_log", response_class=StreamingResponse)
def export(
    services: Services,
    _: Viewer,
    conditions: Conditions,
    form: Annotated[Literal["csv", "jsonl"], Query(alias="format", description="CSV, or a JSON object a line.")] = "csv",
    separator: Annotated[Separator, Query(description="Between the cells of CSV.")] = Separator.COMMA,
) -> StreamingResponse:
    """Returns the decisions that fulfil all conditions as a file, newest first."""
    clients = services.clients()
    rows = exported_rows(services.store, conditions.query(clients, services.clock(), services.zone), clients)
    text = _csv(rows, separator) if form == "csv" else _lines(rows)
    headers = {"content-disposition": f'attachment; filename="decisions.{form}"'}
    return StreamingResponse(text, media_type="text/csv" if form == "csv" else "application/x-ndjson", headers=headers)


@router.post("/log/purge", operation_id="purge_log")
def purge(services: Services, identity: Admin, body: Purge) -> RemovedModel:
    """Removes decisions for good, with all that is counted and indexed of them."""
    now = services.clock()
    before = read_moment(body.before, now, back=True, zone=services.zone) if body.before else None
    removed = purge_log(services.store, services.settings, before, body.client)
    record(services, identity, "log.purged", body.client, body.before)
    return RemovedModel(removed=removed)


@router.post("/clients/{name}/erase", operation_id="erase_client", tags=["clients"])
def erase(
    services: Services,
    identity: Admin,
    name: Annotated[str, Path(min_length=1, max_length=200, description="Of the client; an address, or `user:NAME`.")],
    body: Erasure,
) -> ErasedModel:
    """Erases everything that is stored of a client: log, counts, requests, links, quotas, and the client itself."""
    erased = erase_client(services.store, services.settings, name, keep=body.keep)
    record(services, identity, "client.erased", name)
    return ErasedModel(counts=dict(erased.counts), backups=[path.name for path in erased.backups])


def _lines(rows: Iterator[dict[str, Any]]) -> Iterator[str]:
    for row in rows:
        yield json.dumps(row, separators=(",", ":")) + "\n"


def _csv(rows: Iterator[dict[str, Any]], separator: Separator) -> Iterator[str]:
    file = io.StringIO(newline="")
    writer = csv.writer(file, delimiter=separator.character)
    writer.writerow(COLUMNS)
    for count, row in enumerate(rows, 1):
        writer.writerow([safe_cell(value, separator) for value in row.values()])
        if not count % _BATCH:
            yield _taken(file)
    yield _taken(file)


def _taken(file: io.StringIO) -> str:
    text = file.getvalue()
    file.seek(0)
    file.truncate()
    return text

"""`/api/v1/rules/import` and `/export`: files of own rules."""

from typing import Annotated, Final

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field

from gatewayfilter.errors import ListError
from gatewayfilter.model import ListAction
from gatewayfilter.use_cases.lists.list_writers import FORMATS, EntryWriter
from gatewayfilter.use_cases.lists.rule_editing import RuleValues
from gatewayfilter.use_cases.lists.rule_transfer import (
    RuleExport,
    RulesRead,
    exported_rules,
    import_rules,
    preview_import,
    read_rules,
)
from gatewayfilter.web.access.changes import changing
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Admin, Viewer
from gatewayfilter.web.api.lists.rule_models import Body, Comment, Expiry, Force, GroupName

router = APIRouter(prefix="/rules", tags=["rules"])

MOST_RULES: Final = 20_000
"""Rules of a file that the dashboard imports: it shows and keeps them in its memory, which is small."""
LONGEST_FILE: Final = 4_000_000
_SAMPLES: Final = 20


class ImportBody(Body):
    """A file of rules: patterns, hosts files, dnsmasq, zones, Adblock lists, or what an export writes."""

    text: Annotated[str, Field(description="The file, at most 4 MB and 20,000 lines.")]
    preview: Annotated[bool, Field(description="Only tell what it would do.")] = False
    action: Annotated[ListAction, Field(description="Of lines without one of their own.")] = ListAction.BLOCK
    comment: Comment = ""
    group: GroupName = ""
    expires_at: Expiry = None
    force: Force = False


class RejectedModel(BaseModel):
    """A line that is no rule."""

    line: Annotated[int, Field(description="Its number, 0 where it has none.")]
    text: Annotated[str, Field(description="Its beginning.")]
    why: Annotated[str, Field(description="Why it cannot be used.")]


class ImportModel(BaseModel):
    """What an import does."""

    rules: Annotated[int, Field(description="Rules that were read.")]
    new: Annotated[int, Field(description="Those that were not there.")]
    changed: Annotated[int, Field(description="Those that were there, and are changed.")]
    same: Annotated[int, Field(description="Those that are there as they are.")]
    stored: Annotated[bool, Field(description="Whether they were stored.")]
    rejected: Annotated[int, Field(description="Lines that are no rules.")]
    samples: Annotated[list[RejectedModel], Field(description="The first of these.")]


def read_file(text: str, values: RuleValues, *, force: bool = False, name: str = "the file") -> RulesRead:
    """Reads a file of rules as the dashboard accepts it.

    Raises:
        ListError: it is too large, or holds no rule.
    """
    if len(text) > LONGEST_FILE:
        raise ListError(f"{name} is longer than {LONGEST_FILE:,} characters; a list of this size belongs among the lists")
    return read_rules(text, values, name, force=force, most=MOST_RULES)


@router.post("/import", operation_id="import_rules")
def import_file(services: Services, identity: Admin, body: ImportBody) -> ImportModel:
    """Imports rules from a file, or tells what that would do."""
    values = RuleValues(body.action, body.comment, body.group, body.expires_at)
    found = read_file(body.text, values, force=body.force)
    preview = preview_import(services.store, found.rules)
    if not body.preview:
        with changing(services, identity, "rule.imported", f"{len(found.rules):,}"):
            import_rules(services.store, found.rules)
    samples = [RejectedModel(line=one.line, text=one.text, why=one.why) for one in found.rejected[:_SAMPLES]]
    return ImportModel(
        rules=len(found.rules),
        new=preview.new,
        changed=preview.changed,
        same=preview.same,
        stored=not body.preview,
        rejected=len(found.rejected),
        samples=samples,
    )


@router.get(
    "/export",
    operation_id="export_rules",
    response_class=Response,
    responses={200: {"description": "The file.", "content": {"text/plain": {"schema": {"type": "string"}}}}},
)
def export(
    services: Services,
    _: Viewer,
    file_format: Annotated[
        str, Query(description=f"How to write them: {', '.join(FORMATS)}. Only json and csv hold everything.", max_length=20)
    ] = "json",
    action: Annotated[ListAction | None, Query(description="Only these.")] = None,
    group: Annotated[str | None, Query(description="Only of this group.", max_length=100)] = None,
) -> Response:
    """Returns rules as a file, which an import reads back."""
    if file_format not in FORMATS:
        raise ListError(f"there is no format {file_format!r}: there are {', '.join(FORMATS)}")
    rules = exported_rules(services.store, RuleExport(file_format, action, group), services.clock())
    text = "".join(f"{line}\n" for line in EntryWriter(file_format).lines(rules))
    kind = {"json": "application/json", "csv": "text/csv"}.get(file_format, "text/plain")
    name = f"rules.{file_format if file_format in {'json', 'csv'} else 'txt'}"
    return Response(text, media_type=f"{kind}; charset=utf-8", headers={"content-disposition": f'attachment; filename="{name}"'})

"""`/api/v1/rules/import` and `/export`: files of own rules."""

from typing import Annotated, Final

from fastapi import Query, Response
from pydantic import BaseModel, Field

from gatewayfilter.model import ListAction
from gatewayfilter.use_cases.lists.list_writers import FORMATS
from gatewayfilter.use_cases.lists.rule_editing import RuleValues
from gatewayfilter.use_cases.lists.rule_transfer import exported_file, import_rules, preview_import, read_small_file
from gatewayfilter.web.access.changes import changing
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Admin, Viewer
from gatewayfilter.web.api.lists.rule_models import Body, Comment, Expiry, Force, GroupName
from gatewayfilter.web.routers import ApiRouter

_TEXT = {"type": "string"}

router = ApiRouter("/rules", tags=["rules"])

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


class ImportedRules(BaseModel):
    """What an import does."""

    rules: Annotated[int, Field(description="Rules that were read.")]
    new: Annotated[int, Field(description="Those that were not there.")]
    changed: Annotated[int, Field(description="Those that were there, and are changed.")]
    same: Annotated[int, Field(description="Those that are there as they are.")]
    stored: Annotated[bool, Field(description="Whether they were stored.")]
    rejected: Annotated[int, Field(description="Lines that are no rules.")]
    samples: Annotated[list[RejectedModel], Field(description="The first of these.")]


@router.post("/import", operation_id="import_rules")
def import_file(services: Services, identity: Admin, body: ImportBody) -> ImportedRules:
    """Imports rules from a file, or tells what that would do."""
    values = RuleValues(body.action, body.comment, body.group, body.expires_at)
    found = read_small_file(body.text, values, force=body.force)
    preview = preview_import(services.store, found.rules)
    if not body.preview:
        with changing(services, identity, "rule.imported", f"{len(found.rules):,}"):
            import_rules(services.store, found.rules)
    samples = [RejectedModel(line=one.line, text=one.text, why=one.why) for one in found.rejected[:_SAMPLES]]
    return ImportedRules(
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
    responses={
        200: {
            "description": "The file.",
            "content": {"application/json": {"schema": {}}, "text/csv": {"schema": _TEXT}, "text/plain": {"schema": _TEXT}},
        }
    },
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
    made = exported_file(services.store, file_format, action, group, services.clock())
    return Response(made.text, media_type=made.media_type, headers={"content-disposition": f'attachment; filename="{made.name}"'})

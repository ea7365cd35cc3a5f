"""`/api/v1/extraction-rules`: where fields and links stand on the pages of a site, and what a rule takes from a page."""

from typing import Annotated, Any

from fastapi import Path, Query, Response
from pydantic import BaseModel, Field

from gatewayfilter.errors import ClassifyError
from gatewayfilter.use_cases.learning.extraction_work import LONGEST_NAME, LONGEST_SOURCE, MOST_HTML
from gatewayfilter.web.access.changes import IfMatch, based_on, etag
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Admin, Viewer
from gatewayfilter.web.routers import ApiRouter

router = ApiRouter("/extraction-rules", tags=["extraction rules"])

Name = Annotated[
    str, Path(min_length=1, max_length=LONGEST_NAME, pattern=r"^[a-z0-9][a-z0-9_-]*$", description="Name of the rule.")
]
Source = Annotated[str, Field(min_length=1, max_length=LONGEST_SOURCE, description="The rule as TOML.")]
Version = Annotated[int, Query(ge=0, lt=10**9, description="An earlier version, 0 for the one in use.")]


class ExtractionRuleModel(BaseModel):
    """An extraction rule in use."""

    name: Annotated[str, Field(description="Its name; rules are tried in the order of their names.")]
    version: Annotated[int, Field(description="Counts its states, 0 for one that cannot be used.")]
    urls: Annotated[str, Field(description="RE2 expression that the whole URL has to match.")]
    host: Annotated[str, Field(description="The host in that expression, empty where it cannot be told.")]
    fields: Annotated[list[str], Field(description="Names of its fields.")]
    links: Annotated[int, Field(description="Number of its tables of links.")]
    written_at: Annotated[float, Field(description="When this version was written (Unix seconds), 0 where unknown.")]
    error: Annotated[str, Field(description="Why it cannot be used, empty where it can.")]
    pages: Annotated[int, Field(description="Pages that it has read, in all its versions; up to date within a minute.")]
    empty: Annotated[int, Field(description="Those of them in which it found nothing.")]
    last_at: Annotated[float, Field(description="When it read the last one (Unix seconds), 0 for none.")]


class ExtractionVersionModel(BaseModel):
    """A state of a rule."""

    version: Annotated[int, Field(description="Its number.")]
    written_at: Annotated[float, Field(description="Unix seconds.")]
    in_use: Annotated[bool, Field(description="Whether it is in use.")]


class ExtractionRuleDetail(ExtractionRuleModel):
    """An extraction rule with its text."""

    source: Annotated[str, Field(description="The rule as TOML.")]
    current: Annotated[int, Field(description="Version in use, 0 for a rule that was removed.")]
    history: Annotated[list[ExtractionVersionModel], Field(description="Its versions, the oldest first.")]


class ExtractionSource(BaseModel):
    """The text of a rule."""

    source: Source


class ExtractionChange(BaseModel):
    """A change of a rule."""

    name: Annotated[str, Field(description="Its name.")]
    before: Annotated[int, Field(description="Version in use before, 0 for none.")]
    after: Annotated[int, Field(description="Version in use now, 0 for none.")]


class ExtractionVersion(BaseModel):
    """The version to restore."""

    version: Annotated[int, Field(ge=1, lt=10**9, description="Its number.")]


class ExtractionPage(BaseModel):
    """A rule, and the page that it is tried on."""

    source: Source
    url: Annotated[str, Field("", max_length=8_000, description="Address of the page; it is fetched where `html` is empty.")]
    html: Annotated[str, Field("", max_length=MOST_HTML, description="The page itself.")]


class ExtractedField(BaseModel):
    """What a field takes from a page."""

    name: Annotated[str, Field(description="Its name.")]
    values: Annotated[list[str], Field(description="At most 50, of 500 characters each.")]
    count: Annotated[int, Field(description="Values that its selector finds, at most 200.")]
    error: Annotated[str, Field(description="Why it could not be read, empty where it was.")]


class ExtractedLinks(BaseModel):
    """What a table of links takes from a page."""

    values: Annotated[list[str], Field(description="URLs that would be queued, at most 50 shown.")]
    count: Annotated[int, Field(description="Different references that its selector finds, at most 200.")]
    error: Annotated[str, Field(description="Why it could not be read, empty where it was.")]


class ExtractedPage(BaseModel):
    """What a rule takes from a page; nothing is learned or queued."""

    url: Annotated[str, Field(description="Address of the page after redirects, empty for none.")]
    matches: Annotated[bool | None, Field(description="Whether the rule is for this address, null without one.")]
    fields: Annotated[list[ExtractedField], Field(description="In the order of the rule.")]
    links: Annotated[list[ExtractedLinks], Field(description="In the order of the rule.")]


@router.get("", operation_id="list_extraction_rules")
def list_rules(services: Services, _: Viewer) -> list[ExtractionRuleModel]:
    """Returns the rules in use, at most 500, in the order in which they are tried."""
    return [ExtractionRuleModel(**row) for row in services.extraction.rules()]


@router.post("/preview", operation_id="preview_extraction_rule")
def preview(services: Services, _: Admin, body: ExtractionPage) -> ExtractedPage:
    """Tries a rule on a page that is sent, or fetched by the crawler's rules of safety. At most four seconds of reading."""
    if not (body.url or body.html):
        raise ClassifyError("send the page, or its address")
    work = services.extraction
    page = {"html": body.html, "url": body.url} if body.html else work.fetch(body.url)
    return ExtractedPage(url=page["url"], **work.read_page(page["html"], page["url"], body.source))


@router.get("/{name}", operation_id="get_extraction_rule")
def get_rule(services: Services, _: Viewer, name: Name, response: Response, version: Version = 0) -> ExtractionRuleDetail:
    """Returns a rule with its text and versions; of one that was removed, the last."""
    found = services.extraction.rule(name, version)
    response.headers.update(etag(str(found["current"])))
    return ExtractionRuleDetail(**found)


@router.put("/{name}", operation_id="put_extraction_rule")
def put_rule(
    services: Services, who: Admin, name: Name, body: ExtractionSource, response: Response, if_match: IfMatch = ""
) -> ExtractionChange:
    """Puts a rule to use as a new version; a running learner applies it within a second. `If-Match: "0"` only makes a new one."""
    change, _ = services.extraction.save(who.actor, name, body.source, based_on(if_match))
    return _answer(change, response)


@router.post("/{name}/restore", operation_id="restore_extraction_rule")
def restore_rule(
    services: Services, who: Admin, name: Name, body: ExtractionVersion, response: Response, if_match: IfMatch = ""
) -> ExtractionChange:
    """Puts an earlier version to use again, as a new one; a removed rule comes back with it."""
    change, _ = services.extraction.restore(who.actor, name, body.version, based_on(if_match))
    return _answer(change, response)


@router.delete("/{name}", operation_id="remove_extraction_rule", status_code=204, response_class=Response)
def remove_rule(services: Services, who: Admin, name: Name, if_match: IfMatch = "") -> None:
    """Takes a rule out of use; its versions stay, and can be restored."""
    services.extraction.remove(who.actor, name, based_on(if_match))


def _answer(change: dict[str, Any], response: Response) -> ExtractionChange:
    response.headers.update(etag(str(change["after"])))
    return ExtractionChange(**change)

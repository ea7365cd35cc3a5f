"""`/api/v1/entries`: which lists have a host or URL, and how many entries there are."""

import pickle
from typing import Annotated, Any

from fastapi import Query
from pydantic import BaseModel, Field

from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Viewer
from gatewayfilter.web.routers import ApiRouter

router = ApiRouter("/entries", tags=["lists"])

_JOBS = "gatewayfilter.web.access.check_job"
_SEARCH_FILES = "gatewayfilter.use_cases.lists.list_jobs:search_files"
_NO_NUL = r"^[^\x00]*$"
"""PostgreSQL refuses it in a text."""


class OwnCountModel(BaseModel):
    """The number of own rules of an action and kind."""

    action: Annotated[str, Field(description="allow, block or splice.")]
    kind: Annotated[str, Field(description="Kind of the pattern.")]
    entries: Annotated[int, Field(description="How many.")]


class LearnedCountModel(BaseModel):
    """The number of learned entries of an action and category."""

    action: Annotated[str, Field(description="allow or block.")]
    category: Annotated[str, Field(description="Code of the category; empty for harmless pages.")]
    entries: Annotated[int, Field(description="How many.")]


class EntryCountsModel(BaseModel):
    """How many entries there are."""

    own: Annotated[list[OwnCountModel], Field(description="Own rules.")]
    own_expired: Annotated[int, Field(description="Own rules that have ended.")]
    own_off: Annotated[int, Field(description="Own rules that are switched off.")]
    learned: Annotated[list[LearnedCountModel], Field(description="Learned entries.")]
    snapshot: Annotated[dict[str, int], Field(description="In use: `blacklist`, `whitelist`, `splicelist`, `adblock_rules`.")]


class FoundRuleModel(BaseModel):
    """An own rule."""

    id: Annotated[int, Field(description="Its number.")]
    action: Annotated[str, Field(description="allow, block or splice.")]
    kind: Annotated[str, Field(description="Kind of the pattern.")]
    pattern: Annotated[str, Field(description="The pattern.")]
    covers: Annotated[bool, Field(description="Whether it applies, or only holds the text.")]


class FoundEntryModel(BaseModel):
    """A learned entry."""

    url: Annotated[str, Field(description="The page.")]
    action: Annotated[str, Field(description="allow or block.")]
    category: Annotated[str, Field(description="Code of the category; empty for harmless.")]


class FoundLineModel(BaseModel):
    """A line of a list."""

    source: Annotated[str, Field(description="Name of the list.")]
    enabled: Annotated[bool, Field(description="Whether the list counts.")]
    category: Annotated[str, Field(description="Of the list.")]
    means: Annotated[str, Field(description="block, allow or splice; exception for an Adblock rule that lifts blocks.")]
    line: Annotated[int, Field(description="Its number; 0 where the line is not found: it writes the name in another way.")]
    text: Annotated[str, Field(description="The line.")]
    entry: Annotated[str, Field(description="The key that covers the URL, or the rule.")]


class FoundModel(BaseModel):
    """Where a host, URL or text is."""

    own: Annotated[list[FoundRuleModel], Field(description="Own rules.")]
    learned: Annotated[list[FoundEntryModel], Field(description="Learned entries, the first 500.")]
    lists: Annotated[list[FoundLineModel], Field(description="Lines of lists, those that are switched off included.")]
    unreadable: Annotated[list[str], Field(description="One sentence for each list that could not be read.")]


@router.get("/counts", operation_id="get_entry_counts")
def counts(services: Services, _: Viewer) -> EntryCountsModel:
    """Counts own rules, learned entries, and what the snapshot in use holds."""
    found: dict[str, Any] = services.checker.run(f"{_JOBS}:count_entries", pickle.dumps(services.settings), services.clock())
    return EntryCountsModel(**found)


@router.get("/search", operation_id="search_entries")
def search(
    services: Services,
    _: Viewer,
    text: Annotated[str, Query(min_length=1, max_length=2_000, pattern=_NO_NUL, description="A host, a URL or a text.")],
    *,
    partial: Annotated[bool, Query(description="Also lines that hold the text, the first 20 of each list.")] = False,
) -> FoundModel:
    """Returns every own rule, learned entry and line of a list that applies to a host or URL; learned entries by their text."""
    found: dict[str, Any] | None = None
    if not partial:
        found = services.checker.run(f"{_JOBS}:search_entries", pickle.dumps(services.settings), text, services.clock())
    if found is None:  # much is to be read: no check of a URL waits for that
        found = services.fetching.run(_SEARCH_FILES, services.settings, text, partial=partial)
    return FoundModel(**found)

"""The API of lists. Written by scripts/make_api_client.py; not to be edited."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

from gatewayfilter.client.transport import Answer, Call, Transport


class EntryCountsModel(TypedDict):
    """How many entries there are."""

    own: list[OwnCountModel]
    own_expired: int
    own_off: int
    learned: list[LearnedCountModel]
    snapshot: dict[str, int]


class OwnCountModel(TypedDict):
    """The number of own rules of an action and kind."""

    action: str
    kind: str
    entries: int


class LearnedCountModel(TypedDict):
    """The number of learned entries of an action and category."""

    action: str
    category: str
    entries: int


class FoundModel(TypedDict):
    """Where a host, URL or text is."""

    own: list[FoundRuleModel]
    learned: list[FoundEntryModel]
    lists: list[FoundLineModel]
    unreadable: list[str]


class FoundRuleModel(TypedDict):
    """An own rule."""

    id: int
    action: str
    kind: str
    pattern: str
    covers: bool


class FoundEntryModel(TypedDict):
    """A learned entry."""

    url: str
    action: str
    category: str


class FoundLineModel(TypedDict):
    """A line of a list."""

    source: str
    enabled: bool
    category: str
    means: str
    line: int
    text: str
    entry: str


class SourcesModel(TypedDict):
    """Lists by name; there are some dozens at most."""

    items: list[SourceModel]
    next: str | None


class SourceModel(TypedDict):
    """A list."""

    name: str
    address: str
    category: str
    action: Literal["block", "allow", "splice"]
    format: str
    enabled: bool
    bundled: bool
    pending: bool
    entries: int
    checked_at: float
    changed_at: float
    next_at: float
    failures: int
    problem: str


class NewSource(TypedDict):
    """Lists to subscribe to."""

    addresses: list[str]
    name: NotRequired[str]
    category: NotRequired[str]
    action: NotRequired[Literal["block", "allow", "splice"] | None]
    interval_h: NotRequired[float]
    preview: NotRequired[bool]


class JobModel(TypedDict):
    """Work on lists: one piece at a time."""

    number: int
    kind: str
    subject: str
    running: bool
    started_at: float
    ended_at: float
    results: list[dict[str, Any]]
    error: str


class SourceUpdate(TypedDict):
    """Lists to check for changes."""

    names: NotRequired[list[str]]


class Publication(TypedDict):
    """How the lists are published."""

    full: NotRequired[bool]


class WholeCatalogueModel(TypedDict):
    """The catalogue of well-known lists."""

    items: list[CatalogueModel]
    bundles: list[BundleModel]


class CatalogueModel(TypedDict):
    """A well-known list."""

    name: str
    title: str
    category: str
    licence: str
    homepage: str
    description: str
    description_zh: str
    entries: int
    added: bool


class BundleModel(TypedDict):
    """The lists that fit a kind of household."""

    name: str
    title: str
    title_zh: str
    lists: list[str]
    missing: list[str]


class SourceSwitch(TypedDict):
    """A change of a list."""

    enabled: bool


class ListsApi:
    """Operations of lists."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def get_entry_counts(self) -> Answer[EntryCountsModel]:
        """Counts own rules, learned entries, and what the snapshot in use holds."""
        return self._transport.send(Call("GET", "/api/v1/entries/counts"))

    def search_entries(self, *, text: str | None = None, partial: bool | None = None) -> Answer[FoundModel]:
        """Returns every own rule, learned entry and line of a list that applies to a host or URL; learned entries by their text."""
        return self._transport.send(Call("GET", "/api/v1/entries/search", query={"text": text, "partial": partial}))

    def list_lists(self, *, after: str | None = None, limit: int | None = None) -> Answer[SourcesModel]:
        """Returns lists by name."""
        return self._transport.send(Call("GET", "/api/v1/lists", query={"after": after, "limit": limit}))

    def add_lists(self, body: NewSource) -> Answer[JobModel]:
        """Subscribes to lists, or previews one. The work goes on after the answer; see `get_list_work`."""
        return self._transport.send(Call("POST", "/api/v1/lists", body=body))

    def update_lists(self, body: SourceUpdate) -> Answer[JobModel]:
        """Checks lists for changes now. The work goes on after the answer."""
        return self._transport.send(Call("POST", "/api/v1/lists/update", body=body))

    def publish_lists(self, body: Publication) -> Answer[JobModel]:
        """Builds the snapshot of all lists, entries and learned pages now. The work goes on after the answer."""
        return self._transport.send(Call("POST", "/api/v1/lists/publish", body=body))

    def get_list_work(self) -> Answer[JobModel]:
        """Returns the work on lists that is being done, or was done last."""
        return self._transport.send(Call("GET", "/api/v1/lists/work"))

    def get_catalogue(self) -> Answer[WholeCatalogueModel]:
        """Returns the catalogue of well-known lists."""
        return self._transport.send(Call("GET", "/api/v1/lists/catalogue"))

    def get_list(self, name: str) -> Answer[SourceModel]:
        """Returns a list."""
        return self._transport.send(Call("GET", "/api/v1/lists/{name}", parameters={"name": name}))

    def change_list(self, name: str, body: SourceSwitch, *, if_match: str = "") -> Answer[JobModel]:
        """Switches a list on or off. The work goes on after the answer."""
        return self._transport.send(
            Call("PATCH", "/api/v1/lists/{name}", parameters={"name": name}, headers={"if-match": if_match}, body=body)
        )

    def remove_list(self, name: str, *, if_match: str = "") -> Answer[JobModel]:
        """Forgets a list and its copy. The work goes on after the answer."""
        return self._transport.send(
            Call("DELETE", "/api/v1/lists/{name}", parameters={"name": name}, headers={"if-match": if_match})
        )

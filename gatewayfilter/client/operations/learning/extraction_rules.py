"""The API of extraction rules. Written by scripts/make_api_client.py; not to be edited."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from gatewayfilter.client.transport import Answer, Call, Transport


class ExtractionRuleModel(TypedDict):
    """An extraction rule in use."""

    name: str
    version: int
    urls: str
    host: str
    fields: list[str]
    links: int
    written_at: float
    error: str
    pages: int
    empty: int
    last_at: float


class ExtractionPage(TypedDict):
    """A rule, and the page that it is tried on."""

    source: str
    url: NotRequired[str]
    html: NotRequired[str]


class ExtractedPage(TypedDict):
    """What a rule takes from a page; nothing is learned or queued."""

    url: str
    matches: bool | None
    fields: list[ExtractedField]
    links: list[ExtractedLinks]


class ExtractedField(TypedDict):
    """What a field takes from a page."""

    name: str
    values: list[str]
    count: int
    error: str


class ExtractedLinks(TypedDict):
    """What a table of links takes from a page."""

    values: list[str]
    count: int
    error: str


class ExtractionRuleDetail(TypedDict):
    """An extraction rule with its text."""

    name: str
    version: int
    urls: str
    host: str
    fields: list[str]
    links: int
    written_at: float
    error: str
    pages: int
    empty: int
    last_at: float
    source: str
    current: int
    history: list[ExtractionVersionModel]


class ExtractionVersionModel(TypedDict):
    """A state of a rule."""

    version: int
    written_at: float
    in_use: bool


class ExtractionSource(TypedDict):
    """The text of a rule."""

    source: str


class ExtractionChange(TypedDict):
    """A change of a rule."""

    name: str
    before: int
    after: int


class ExtractionVersion(TypedDict):
    """The version to restore."""

    version: int


class ExtractionRulesApi:
    """Operations of extraction rules."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list_extraction_rules(self) -> Answer[list[ExtractionRuleModel]]:
        """Returns the rules in use, at most 500, in the order in which they are tried."""
        return self._transport.send(Call("GET", "/api/v1/extraction-rules"))

    def preview_extraction_rule(self, body: ExtractionPage) -> Answer[ExtractedPage]:
        """Tries a rule on a page that is sent, or fetched by the crawler's rules of safety. At most four seconds of reading."""
        return self._transport.send(Call("POST", "/api/v1/extraction-rules/preview", body=body))

    def get_extraction_rule(self, name: str, *, version: int | None = None) -> Answer[ExtractionRuleDetail]:
        """Returns a rule with its text and versions; of one that was removed, the last."""
        return self._transport.send(
            Call("GET", "/api/v1/extraction-rules/{name}", parameters={"name": name}, query={"version": version})
        )

    def put_extraction_rule(self, name: str, body: ExtractionSource, *, if_match: str = "") -> Answer[ExtractionChange]:
        """Puts a rule to use as a new version; a running learner applies it within a second. `If-Match: "0"` only makes a new one."""
        return self._transport.send(
            Call("PUT", "/api/v1/extraction-rules/{name}", parameters={"name": name}, headers={"if-match": if_match}, body=body)
        )

    def remove_extraction_rule(self, name: str, *, if_match: str = "") -> Answer[bytes]:
        """Takes a rule out of use; its versions stay, and can be restored."""
        return self._transport.send(
            Call("DELETE", "/api/v1/extraction-rules/{name}", parameters={"name": name}, headers={"if-match": if_match})
        )

    def restore_extraction_rule(self, name: str, body: ExtractionVersion, *, if_match: str = "") -> Answer[ExtractionChange]:
        """Puts an earlier version to use again, as a new one; a removed rule comes back with it."""
        return self._transport.send(
            Call(
                "POST",
                "/api/v1/extraction-rules/{name}/restore",
                parameters={"name": name},
                headers={"if-match": if_match},
                body=body,
            )
        )

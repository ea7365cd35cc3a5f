"""The API of rules. Written by scripts/make_api_client.py; not to be edited."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

from gatewayfilter.client.transport import Answer, Call, Transport


class ImportBody(TypedDict):
    """A file of rules: patterns, hosts files, dnsmasq, zones, Adblock lists, or what an export writes."""

    text: str
    preview: NotRequired[bool]
    action: NotRequired[Literal["block", "allow", "splice"]]
    comment: NotRequired[str]
    group: NotRequired[str]
    expires_at: NotRequired[float | None]
    force: NotRequired[bool]


class ImportedRules(TypedDict):
    """What an import does."""

    rules: int
    new: int
    changed: int
    same: int
    stored: bool
    rejected: int
    samples: list[RejectedModel]


class RejectedModel(TypedDict):
    """A line that is no rule."""

    line: int
    text: str
    why: str


class RulePageModel(TypedDict):
    """A page of rules, newest first."""

    items: list[RuleModel]
    next: int | None
    total: int


class RuleModel(TypedDict):
    """A rule of one's own. It outranks every list; allow outranks block."""

    id: int
    action: Literal["block", "allow", "splice"]
    kind: Literal["url", "prefix", "host", "domain", "wildcard", "regex"]
    pattern: str
    comment: str
    group: str
    expires_at: float | None
    enabled: bool
    scope: str


class NewRules(TypedDict):
    """Rules to add."""

    patterns: list[str]
    action: NotRequired[Literal["block", "allow", "splice"]]
    exact: NotRequired[bool]
    comment: NotRequired[str]
    group: NotRequired[str]
    expires_at: NotRequired[float | None]
    scope: NotRequired[str]
    force: NotRequired[bool]


class AddedRules(TypedDict):
    """Rules that were added, or changed because they were there."""

    items: list[AddedRuleModel]


class AddedRuleModel(TypedDict):
    """A rule as it was stored."""

    rule: RuleModel
    whole_site: str
    mixed_scripts: str


class RuleGroupsModel(TypedDict):
    """The groups of rules, by name."""

    items: list[RuleGroupModel]


class RuleGroupModel(TypedDict):
    """A group of rules."""

    group: str
    rules: int
    enabled: int


class RuleSwitch(TypedDict):
    """Rules to switch on or off: those of `ids`, or all of a group."""

    ids: NotRequired[list[int]]
    group: NotRequired[str]
    enabled: bool


class SwitchedModel(TypedDict):
    """What became of a switch."""

    rules: int
    changed: int


class TestBody(TypedDict):
    """Rules to test."""

    rules: str
    urls: NotRequired[str]
    action: NotRequired[Literal["block", "allow", "splice"]]


class RuleTestModel(TypedDict):
    """The outcome of a test."""

    lines: list[TestedLineModel]
    urls: list[OutcomeModel]
    looked_at: int


class TestedLineModel(TypedDict):
    """A tested line."""

    line: int
    text: str
    kind: str
    action: Literal["block", "allow", "splice"] | None
    meaning: str
    error: str
    column: int
    broad: bool
    tried: list[TriedModel]
    logged: int
    hosts: list[str]


class TriedModel(TypedDict):
    """An address that a line was tried on."""

    url: str
    applies: bool


class OutcomeModel(TypedDict):
    """What all lines together do to an address."""

    url: str
    action: Literal["block", "allow", "splice"] | None


class RuleChange(TypedDict):
    """A change of a rule; what is left out stays."""

    pattern: NotRequired[str | None]
    action: NotRequired[Literal["block", "allow", "splice"] | None]
    comment: NotRequired[str | None]
    group: NotRequired[str | None]
    expires_at: NotRequired[float | None]
    enabled: NotRequired[bool | None]
    scope: NotRequired[str | None]
    force: NotRequired[bool]


class RulesApi:
    """Operations of rules."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def import_rules(self, body: ImportBody) -> Answer[ImportedRules]:
        """Imports rules from a file, or tells what that would do."""
        return self._transport.send(Call("POST", "/api/v1/rules/import", body=body))

    def export_rules(
        self,
        *,
        file_format: str | None = None,
        action: Literal["block", "allow", "splice"] | None = None,
        group: str | None = None,
    ) -> Answer[Any]:
        """Returns rules as a file, which an import reads back."""
        return self._transport.send(
            Call("GET", "/api/v1/rules/export", query={"file_format": file_format, "action": action, "group": group})
        )

    def list_rules(
        self,
        *,
        q: str | None = None,
        action: Literal["block", "allow", "splice"] | None = None,
        group: str | None = None,
        scope: str | None = None,
        enabled: bool | None = None,
        after: int | None = None,
        limit: int | None = None,
    ) -> Answer[RulePageModel]:
        """Returns rules, newest first."""
        return self._transport.send(
            Call(
                "GET",
                "/api/v1/rules",
                query={
                    "q": q,
                    "action": action,
                    "group": group,
                    "scope": scope,
                    "enabled": enabled,
                    "after": after,
                    "limit": limit,
                },
            )
        )

    def add_rules(self, body: NewRules) -> Answer[AddedRules]:
        """Adds rules, or changes action, comment and expiry of those that are there. They count within a second."""
        return self._transport.send(Call("POST", "/api/v1/rules", body=body))

    def list_rule_groups(self) -> Answer[RuleGroupsModel]:
        """Returns the groups of rules, by name."""
        return self._transport.send(Call("GET", "/api/v1/rules/groups"))

    def switch_rules(self, body: RuleSwitch) -> Answer[SwitchedModel]:
        """Switches rules on or off: those of `ids`, or all of `group`."""
        return self._transport.send(Call("POST", "/api/v1/rules/switch", body=body))

    def test_rules(self, body: TestBody) -> Answer[RuleTestModel]:
        """Tests rules on addresses and on what was requested lately; nothing is stored."""
        return self._transport.send(Call("POST", "/api/v1/rules/test", body=body))

    def get_rule(self, rule_id: int) -> Answer[RuleModel]:
        """Returns a rule."""
        return self._transport.send(Call("GET", "/api/v1/rules/{rule_id}", parameters={"rule_id": rule_id}))

    def change_rule(self, rule_id: int, body: RuleChange, *, if_match: str = "") -> Answer[RuleModel]:
        """Changes a rule, which keeps its number."""
        return self._transport.send(
            Call("PATCH", "/api/v1/rules/{rule_id}", parameters={"rule_id": rule_id}, headers={"if-match": if_match}, body=body)
        )

    def remove_rule(self, rule_id: int, *, if_match: str = "") -> Answer[bytes]:
        """Removes a rule."""
        return self._transport.send(
            Call("DELETE", "/api/v1/rules/{rule_id}", parameters={"rule_id": rule_id}, headers={"if-match": if_match})
        )

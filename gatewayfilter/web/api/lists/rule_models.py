"""Models of the API about own rules."""

from typing import TYPE_CHECKING, Annotated, Final

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict, Field

from gatewayfilter.model import EntryKind, ListAction, ManualRule
from gatewayfilter.use_cases.lists.patterns import Pattern
from gatewayfilter.use_cases.lists.rule_editing import AddedRule, RuleValues

if TYPE_CHECKING:  # the compiler of rules, which is imported when needed
    from gatewayfilter.use_cases.lists.rule_tester import RuleTest

LONGEST_PATTERN: Final = 2_048
LONGEST_COMMENT: Final = 1_000
LONGEST_NAME: Final = 100
MOST_PATTERNS: Final = 1_000
LATEST: Final = 253_402_300_000.0
"""The end of the year 9999."""

Limit = Annotated[int, Query(description="Most items of a page.", ge=1, le=1_000)]
RuleNumber = Annotated[int, Path(description="The rule's number.", ge=0, lt=2**62)]
PatternText = Annotated[
    str,
    Field(
        description="A host, URL, wildcard or /regular expression/, as `list add` takes it.",
        min_length=1,
        max_length=LONGEST_PATTERN,
    ),
]
Comment = Annotated[str, Field(description="The reason, for later readers.", max_length=LONGEST_COMMENT)]
GroupName = Annotated[str, Field(description='Which it is switched on and off with, "" for none.', max_length=LONGEST_NAME)]
Scope = Annotated[
    str, Field(description='Whom it is for: client:NAME, group:NAME, or "" for everybody.', max_length=LONGEST_NAME + 10)
]
Expiry = Annotated[float | None, Field(description="When it ends, in Unix seconds; null for never.", ge=0, lt=LATEST)]
Force = Annotated[bool, Field(description="Accept patterns that are usually too broad: com, *.")]


class Body(BaseModel):
    """What a request sends; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class RuleModel(BaseModel):
    """A rule of one's own. It outranks every list; allow outranks block."""

    id: Annotated[int, Field(description="Its number.")]
    action: Annotated[ListAction, Field(description="What it does; splice: connections pass unread.")]
    kind: Annotated[EntryKind, Field(description="What its pattern is.")]
    pattern: Annotated[str, Field(description="As it is written.")]
    comment: Comment
    group: GroupName
    expires_at: Expiry
    enabled: Annotated[bool, Field(description="Whether it counts.")]
    scope: Scope

    @classmethod
    def of(cls, rule: ManualRule) -> "RuleModel":
        """Returns the model of a rule."""
        return cls(
            id=rule.rule_id,
            action=rule.action,
            kind=rule.kind,
            pattern=Pattern(rule.kind, rule.pattern).written(),
            comment=rule.comment,
            group=rule.group,
            expires_at=rule.expires_at,
            enabled=rule.enabled,
            scope=rule.scope,
        )


class RulePageModel(BaseModel):
    """A page of rules, newest first."""

    items: Annotated[list[RuleModel], Field(description="The rules.")]
    next: Annotated[int | None, Field(description="`after` of the next page, null at the end.")]
    total: Annotated[int, Field(description="How many there are on all pages.")]


class NewRules(Body):
    """Rules to add."""

    patterns: Annotated[list[PatternText], Field(description="One rule each.", min_length=1, max_length=MOST_PATTERNS)]
    action: Annotated[ListAction, Field(description="What they do.")] = ListAction.BLOCK
    exact: Annotated[bool, Field(description="Hosts without their subdomains.")] = False
    comment: Comment = ""
    group: GroupName = ""
    expires_at: Expiry = None
    scope: Scope = ""
    force: Force = False

    def values(self) -> RuleValues:
        """Returns what each rule is given."""
        return RuleValues(self.action, self.comment, self.group, self.expires_at, self.scope)


class AddedRuleModel(BaseModel):
    """A rule as it was stored."""

    rule: Annotated[RuleModel, Field(description="The rule.")]
    whole_site: Annotated[str, Field(description="The host, where only its start page is meant, which is rarely intended.")]
    mixed_scripts: Annotated[str, Field(description="The host, where it mixes letters of several alphabets.")]

    @classmethod
    def of(cls, added: AddedRule) -> "AddedRuleModel":
        """Returns the model of a rule that was added."""
        return cls(rule=RuleModel.of(added.rule), whole_site=added.whole_site, mixed_scripts=added.mixed_scripts)


class AddedRules(BaseModel):
    """Rules that were added, or changed because they were there."""

    items: Annotated[list[AddedRuleModel], Field(description="In the order of the request.")]


class RuleChange(Body):
    """A change of a rule; what is left out stays."""

    pattern: Annotated[PatternText | None, Field(description="Another pattern.")] = None
    action: Annotated[ListAction | None, Field(description="Another action.")] = None
    comment: Annotated[Comment | None, Field(description="Another comment.")] = None
    group: Annotated[GroupName | None, Field(description='Another group, "" for none.')] = None
    expires_at: Annotated[Expiry, Field(description="When it ends, in Unix seconds; null for never.")] = None
    enabled: Annotated[bool | None, Field(description="Whether it counts.")] = None
    scope: Annotated[Scope | None, Field(description='Whom it is for, "" for everybody.')] = None
    force: Force = False


class RuleSwitch(Body):
    """Rules to switch on or off: those of `ids`, or all of a group."""

    ids: Annotated[list[int], Field(description="Numbers of rules.", max_length=MOST_PATTERNS)] = []
    group: Annotated[GroupName, Field(description="All rules of this group.")] = ""
    enabled: Annotated[bool, Field(description="Whether they count from now on.")]


class SwitchedModel(BaseModel):
    """What became of a switch."""

    rules: Annotated[int, Field(description="Rules that were named.")]
    changed: Annotated[int, Field(description="Rules that were switched the other way before.")]


class RuleGroupModel(BaseModel):
    """A group of rules."""

    group: Annotated[str, Field(description="Its name.")]
    rules: Annotated[int, Field(description="How many it has.")]
    enabled: Annotated[int, Field(description="How many of them count.")]


class RuleGroupsModel(BaseModel):
    """The groups of rules, by name."""

    items: Annotated[list[RuleGroupModel], Field(description="The groups.")]


class TestBody(Body):
    """Rules to test."""

    __test__ = False  # for pytest

    rules: Annotated[str, Field(description="One rule a line; @@ before those that allow. At most 50 lines.", max_length=20_000)]
    urls: Annotated[str, Field(description="One address a line to try them on; empty for examples.", max_length=100_000)] = ""
    action: Annotated[ListAction, Field(description="Of lines without one of their own.")] = ListAction.BLOCK


class TriedModel(BaseModel):
    """An address that a line was tried on."""

    url: Annotated[str, Field(description="The address.")]
    applies: Annotated[bool, Field(description="Whether the line applies to it.")]


class TestedLineModel(BaseModel):
    """A tested line."""

    __test__ = False

    line: Annotated[int, Field(description="Its number, from 1.")]
    text: Annotated[str, Field(description="The line.")]
    kind: Annotated[str, Field(description="rule, adblock or hiding (only lists may hold these), comment, wrong.")]
    action: Annotated[ListAction | None, Field(description="What it does, null for nothing.")]
    meaning: Annotated[str, Field(description="What it stands for, in English.")]
    error: Annotated[str, Field(description='Why it cannot be used, "" where it can.')]
    column: Annotated[int, Field(description="Where the error is, from 1; 0 where that is not known.")]
    broad: Annotated[bool, Field(description="It is usually too broad, and needs `force`.")]
    tried: Annotated[list[TriedModel], Field(description="Addresses of the test, or examples.")]
    logged: Annotated[int, Field(description="How many of the newest logged requests it applies to.")]
    hosts: Annotated[list[str], Field(description="The most frequent hosts of these.")]


class OutcomeModel(BaseModel):
    """What all lines together do to an address."""

    url: Annotated[str, Field(description="The address.")]
    action: Annotated[ListAction | None, Field(description="What they do, null for nothing.")]


class RuleTestModel(BaseModel):
    """The outcome of a test."""

    lines: Annotated[list[TestedLineModel], Field(description="Line by line.")]
    urls: Annotated[list[OutcomeModel], Field(description="Address by address.")]
    looked_at: Annotated[int, Field(description="How many logged requests there were to try.")]

    @classmethod
    def of(cls, test: "RuleTest") -> "RuleTestModel":
        """Returns the model of a test."""
        lines = [
            TestedLineModel(
                line=one.line,
                text=one.text,
                kind=one.kind,
                action=one.action,
                meaning=one.pattern.describe(one.action) if one.pattern is not None else "",
                error=one.error,
                column=one.column,
                broad=one.broad,
                tried=[TriedModel(url=tried.url, applies=tried.applies) for tried in one.tried],
                logged=one.logged,
                hosts=list(one.hosts),
            )
            for one in test.lines
        ]
        urls = [OutcomeModel(url=one.url, action=one.action) for one in test.urls]
        return cls(lines=lines, urls=urls, looked_at=test.looked_at)

"""Forms of own rules: what they hold, and what it stands for."""

import re
from datetime import datetime, tzinfo
from typing import Annotated, Final

from pydantic import BaseModel, Field

from gatewayfilter.errors import PolicyError
from gatewayfilter.interfaces import RuleQuery
from gatewayfilter.model import ListAction, ManualRule
from gatewayfilter.use_cases.lists.patterns import Pattern
from gatewayfilter.use_cases.lists.rule_editing import RuleValues, version_of

LASTING_S: Final = {"1h": 3_600.0, "1d": 86_400.0, "7d": 7 * 86_400.0, "30d": 30 * 86_400.0}
"""Choices of a rule's end, in seconds from now."""
EVER: Final = "ever"
KEEP: Final = "keep"
ON_DAY: Final = "day"
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_DAY_S: Final = 86_400.0


class RuleForm(BaseModel):
    """The form of new rules."""

    rules: Annotated[str, Field(max_length=20_000)] = ""
    addresses: Annotated[str, Field(max_length=20_000)] = ""
    action: ListAction = ListAction.BLOCK
    scope: Annotated[str, Field(max_length=120)] = ""
    lasts: Annotated[str, Field(max_length=10)] = EVER
    until: Annotated[str, Field(max_length=10)] = ""
    group: Annotated[str, Field(max_length=100)] = ""
    comment: Annotated[str, Field(max_length=1_000)] = ""
    force: bool = False

    def values(self, now: float, zone: tzinfo, kept: float | None = None) -> RuleValues:
        """Returns what each rule is given.

        Args:
            now: Unix seconds.
            zone: of the day that is its end.
            kept: the end that stays where the form does not change it.

        Raises:
            PolicyError: the end is none, or has passed.
        """
        return RuleValues(self.action, self.comment.strip(), self.group.strip(), self._end(now, zone, kept), self.scope)

    def _end(self, now: float, zone: tzinfo, kept: float | None) -> float | None:
        if self.lasts == ON_DAY:
            return end_of_day(self.until, now, zone)
        if self.lasts == KEEP:
            return kept
        return now + LASTING_S[self.lasts] if self.lasts in LASTING_S else None


class EditForm(RuleForm):
    """The form of a rule that is there."""

    enabled: bool = False
    version: Annotated[str, Field(max_length=80)] = ""

    @classmethod
    def of(cls, rule: ManualRule) -> "EditForm":
        """Returns the form as it shows a rule; what a command made may be longer than the form takes."""
        return cls.model_construct(
            rules=Pattern(rule.kind, rule.pattern).written(),
            action=rule.action,
            scope=rule.scope,
            lasts=EVER if rule.expires_at is None else KEEP,
            group=rule.group,
            comment=rule.comment,
            enabled=rule.enabled,
            version=version_of(rule),
        )


class RuleFilter(BaseModel):
    """What the page of rules shows: its address."""

    q: Annotated[str, Field(max_length=300)] = ""
    action: Annotated[str, Field(max_length=10)] = ""
    group: Annotated[str, Field(max_length=100)] = ""
    scope: Annotated[str, Field(max_length=120)] = ""
    state: Annotated[str, Field(max_length=10)] = ""
    after: Annotated[int, Field(ge=0, lt=2**53)] = 0

    def query(self) -> RuleQuery:
        """Returns which rules are shown; what cannot be read does not narrow them."""
        action = ListAction(self.action) if self.action in ListAction else None
        enabled = {"on": True, "off": False}.get(self.state)
        return RuleQuery(self.q.strip(), action, self.group or None, self.scope or None, enabled)

    @property
    def narrows(self) -> bool:
        """Whether something is left out."""
        return self.query() != RuleQuery()


def end_of_day(text: str, now: float, zone: tzinfo) -> float:
    """Returns the end of a day in the filter's time zone, in Unix seconds.

    Raises:
        PolicyError: it is no day, or has passed.
    """
    if not _DATE.fullmatch(text):
        raise PolicyError(f"{text!r} is no day: write 2030-01-31")
    try:
        moment = datetime.fromisoformat(f"{text}T23:59:59").replace(tzinfo=zone).timestamp()
    except (ValueError, OverflowError, OSError) as error:
        raise PolicyError(f"{text!r} is no day: write 2030-01-31") from error
    if moment <= now:
        raise PolicyError(f"{text} has passed")
    if moment > now + 100 * 366 * _DAY_S:
        raise PolicyError(f"{text} is too far away")
    return moment


def day_of(moment: float | None, zone: tzinfo) -> str:
    """Returns the day of a moment as a date field holds it, `""` for none."""
    return "" if moment is None else datetime.fromtimestamp(moment, zone).strftime("%Y-%m-%d")

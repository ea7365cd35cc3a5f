"""Extraction rules: shown, put to use, restored, removed, and the changes taken back. Loads no classifier and no crawler."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gatewayfilter.config import Settings
from gatewayfilter.errors import ClassifyError, ConflictError, MissingRuleError, UndoError
from gatewayfilter.extraction.rule_folder import RuleFolder, RuleVersion
from gatewayfilter.extraction.rule_form import host_of
from gatewayfilter.extraction.rules import ExtractionRule, parse_rule
from gatewayfilter.wiring import rules_folder

ADDED: Final = "extraction.added"
RESTORED: Final = "extraction.restored"
REMOVED: Final = "extraction.removed"


@dataclass(frozen=True, slots=True)
class RuleSummary:
    """A rule in use.

    Attributes:
        version: counts its states, 0 for one that cannot be used.
        urls: expression for the URLs that it is for.
        host: the host in that expression, `""` where it cannot be told.
        fields: their names.
        links: number of its tables of links.
        written_at: when this version was written (Unix seconds), 0 where that is not known.
        error: why it cannot be used, `""` where it can.
    """

    name: str
    version: int = 0
    urls: str = ""
    host: str = ""
    fields: tuple[str, ...] = ()
    links: int = 0
    written_at: float = 0.0
    error: str = ""


@dataclass(frozen=True, slots=True)
class RuleDetail:
    """A rule with its text and its versions.

    Attributes:
        rule: as it was asked for.
        current: version in use, 0 for none.
        history: the oldest first.
    """

    rule: ExtractionRule
    summary: RuleSummary
    current: int
    history: tuple[RuleVersion, ...]


@dataclass(frozen=True, slots=True)
class RuleChange:
    """A change of a rule: the version in use before and after, 0 for none; they are the same where nothing was changed."""

    rule: ExtractionRule | None
    name: str
    before: int
    after: int

    @property
    def step(self) -> tuple[str, int, int]:
        """What takes it back; see `take_back`."""
        return self.name, self.before, self.after


def list_rules(settings: Settings) -> list[RuleSummary]:
    """Returns the rules in use, in the order in which they are tried; one that cannot be used with its `error`."""
    folder, rows = rules_folder(settings), []
    for name in folder.names():
        try:
            rows.append(_summary(folder.rule(name), folder.history(name)))
        except ClassifyError as error:
            rows.append(RuleSummary(name, error=str(error)))
    return rows


def show_rule(settings: Settings, name: str, version: int = 0) -> RuleDetail:
    """Returns a rule: the version in use, of one that was removed the last, or an earlier one.

    Raises:
        MissingRuleError: there never was one, or it has no such version.
        ClassifyError: its file is damaged.
    """
    folder = rules_folder(settings)
    history = tuple(folder.history(name))
    current = _current(folder, name)
    if not version and not current and history:
        version = history[-1].version
    rule = folder.rule(name, version)
    return RuleDetail(rule, _summary(rule, history), current, history)


def rule_history(settings: Settings, name: str) -> list[RuleVersion]:
    """Returns the versions of a rule, the oldest first.

    Raises:
        MissingRuleError: there never was one.
    """
    found = rules_folder(settings).history(name)
    if not found:
        raise MissingRuleError(f"there never was a rule {name!r}")
    return found


def save_rule(settings: Settings, rule: ExtractionRule, based_on: int | None = None) -> RuleChange:
    """Puts a rule to use as a new version; one that is in use word for word stays as it is.

    Args:
        settings: the settings.
        rule: that was checked.
        based_on: the version that was edited, 0 for a new rule, `None` for any.

    Raises:
        ConflictError: another version is in use.
        ClassifyError: it cannot be written, or there are too many.
    """
    folder = rules_folder(settings)
    with folder.changing():
        before = _checked(folder, rule.name, based_on)
        added = folder.add(rule)
    return RuleChange(added, rule.name, before, added.version)


def checked_rule(name: str, source: str) -> ExtractionRule:
    """Returns a rule that is to be saved under a name.

    Raises:
        ClassifyError: it cannot be used, or the text names another rule.
    """
    rule = parse_rule(source, name)
    if rule.name != name:
        raise ClassifyError(f"the text is of another rule, {rule.name!r}")
    return rule


def restore_rule(settings: Settings, name: str, version: int, based_on: int | None = None) -> RuleChange:
    """Puts an earlier version to use again, as a new one; a removed rule comes back with it.

    Raises:
        MissingRuleError: there is no such version.
        ConflictError: another version than `based_on` is in use.
        ClassifyError: it cannot be written.
    """
    folder = rules_folder(settings)
    with folder.changing():
        before = _checked(folder, name, based_on)
        restored = folder.restore(name, version)
    return RuleChange(restored, name, before, restored.version)


def remove_rule(settings: Settings, name: str, based_on: int | None = None) -> RuleChange:
    """Takes a rule out of use; its history stays.

    Raises:
        MissingRuleError: there is none.
        ConflictError: another version than `based_on` is in use.
        ClassifyError: it cannot be removed.
    """
    folder = rules_folder(settings)
    with folder.changing():
        before = _checked(folder, name, based_on)
        if not folder.remove(name):
            raise MissingRuleError(f"no rule {name!r}")
    return RuleChange(None, name, before, 0)


def take_back(settings: Settings, changed: Sequence[tuple[str, int, int]]) -> None:
    """Takes changes of rules back: name, version in use before and after, 0 for none.

    Raises:
        UndoError: a rule was changed since; none is changed then.
        ClassifyError: one cannot be written.
    """
    folder = rules_folder(settings)
    with folder.changing():
        for name, _, after in changed:
            if _current(folder, name) != after:
                raise UndoError(f"the rule {name!r} was changed since")
        for name, before, _ in changed:
            if before:
                folder.restore(name, before)
            else:
                folder.remove(name)


def _checked(folder: RuleFolder, name: str, based_on: int | None) -> int:
    """Returns the version in use, which becomes one where its file was written by hand."""
    if based_on is not None and _current(folder, name) != based_on:
        raise ConflictError("somebody has changed this since: load it again")
    folder.keep(name)
    return _current(folder, name)


def _current(folder: RuleFolder, name: str) -> int:
    """Returns the version in use: the newest one, unless the rule was removed."""
    history = folder.history(name)
    return history[-1].version if name in folder.names() and history else 0


def _summary(rule: ExtractionRule, history: Sequence[RuleVersion]) -> RuleSummary:
    fields = tuple(row.name for row in rule.fields)
    written = next((found.written_at for found in history if found.version == rule.version), 0.0)
    return RuleSummary(rule.name, rule.version, rule.urls, host_of(rule.urls), fields, len(rule.links), written)

"""Forms of own rules: the ends that they can give a rule, and what the page is narrowed to."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from gatewayfilter.errors import PolicyError
from gatewayfilter.interfaces import RuleQuery
from gatewayfilter.model import EntryKind, ListAction, ManualRule
from gatewayfilter.use_cases.lists.rule_editing import RuleValues, version_of
from gatewayfilter.web.pages.lists.rule_forms import EditForm, RuleFilter, RuleForm, day_of, end_of_day

NOW = 1_800_000_000.0
DAY_S = 86_400.0


@pytest.mark.parametrize(
    ("lasts", "end"),
    [
        ("ever", None),
        ("keep", 17.0),
        ("1h", NOW + 3_600),
        ("1d", NOW + DAY_S),
        ("7d", NOW + 7 * DAY_S),
        ("30d", NOW + 30 * DAY_S),
        ("day", datetime(2030, 1, 31, 23, 59, 59, tzinfo=UTC).timestamp()),
        ("2h", None),
    ],
)
def test_what_a_rule_is_given(lasts: str, end: float | None) -> None:
    form = RuleForm(action=ListAction.ALLOW, comment=" why ", group=" g ", scope="group:g", lasts=lasts, until="2030-01-31")
    assert form.values(NOW, UTC, 17.0) == RuleValues(ListAction.ALLOW, "why", "g", end, "group:g")
    assert RuleForm().values(NOW, UTC) == RuleValues(ListAction.BLOCK, "", "", None, "")
    assert RuleForm().force is False


def test_a_day_ends_in_the_time_zone_of_the_filter() -> None:
    end = datetime(2030, 1, 31, 23, 59, 59, tzinfo=UTC).timestamp()
    assert end_of_day("2030-01-31", NOW, UTC) == end
    assert end_of_day("2030-01-31", NOW, timezone(timedelta(hours=8))) == end - 8 * 3_600
    assert end_of_day("2030-01-31", end - 1, UTC) == end
    assert end_of_day("2030-01-31", end - 100 * 366 * DAY_S, UTC) == end
    for text, now, why in (
        ("2030-01-31", end, "2030-01-31 has passed"),
        ("2030-01-31", end - 100 * 366 * DAY_S - 1, "2030-01-31 is too far away"),
        ("2030-02-30", NOW, "'2030-02-30' is no day: write 2030-01-31"),
        ("2030-1-31", NOW, "'2030-1-31' is no day: write 2030-01-31"),
        ("", NOW, "'' is no day: write 2030-01-31"),
        ("2030-01-31 ", NOW, "'2030-01-31 ' is no day: write 2030-01-31"),
    ):
        with pytest.raises(PolicyError) as refused:
            end_of_day(text, now, UTC)
        assert str(refused.value) == why
    assert (day_of(None, UTC), day_of(end, UTC), day_of(end, timezone(timedelta(hours=1)))) == ("", "2030-01-31", "2030-02-01")


def test_the_form_of_a_rule_holds_all_of_it() -> None:
    rule = ManualRule(3, ListAction.ALLOW, EntryKind.DOMAIN, ".a.example", "c" * 2_000, "g", None, enabled=True, scope="group:x")
    form = EditForm.of(rule)
    assert (form.rules, form.action, form.scope, form.lasts, form.group, form.comment, form.enabled, form.version) == (
        "a.example", ListAction.ALLOW, "group:x", "ever", "g", "c" * 2_000, True, version_of(rule),
    )  # fmt: skip
    ending = ManualRule(3, ListAction.ALLOW, EntryKind.DOMAIN, ".a.example", "", "g", 9.0, enabled=False)
    assert (EditForm.of(ending).lasts, EditForm.of(ending).enabled, EditForm().enabled) == ("keep", False, False)


def test_what_cannot_be_read_narrows_nothing() -> None:
    every = RuleFilter(q=" a ", action="allow", group="g", scope="client:c", state="on")
    assert every.query() == RuleQuery("a", ListAction.ALLOW, "g", "client:c", True)
    assert every.narrows
    assert RuleFilter(state="off").query() == RuleQuery(enabled=False)
    wrong = RuleFilter(q=" ", action="x", state="x", after=3)
    assert (wrong.query(), wrong.narrows) == (RuleQuery(), False)

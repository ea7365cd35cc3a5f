"""Extraction rules: put to use, changed by two people, put back, removed; and what the audit log keeps of it."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.errors import ClassifyError, ConflictError, MissingRuleError, UndoError
from gatewayfilter.interfaces import RuleMatches
from gatewayfilter.model import Actor, Via
from gatewayfilter.store import Store
from gatewayfilter.use_cases.learning import extraction_jobs
from gatewayfilter.use_cases.learning.extraction_rules import list_rules, remove_rule, rule_history, show_rule
from gatewayfilter.use_cases.learning.extraction_work import ExtractionWork
from gatewayfilter.wiring import rules_folder
from tests.use_cases.learning.own_process import OwnProcess

RULE = "urls = 'https?://news\\.example/.*'\n[fields.title]\ncss = 'h1'\n[[links]]\ncss = 'a'\n"
OTHER = RULE.replace("title", "lead")
ANNA = Actor("anna", Via.SESSION)


@pytest.fixture
def work(settings: Settings, store: Store) -> ExtractionWork:
    return ExtractionWork(OwnProcess(), OwnProcess(), settings, store, lambda: 1_800_000_000.0)


def save(settings: Settings, source: str = RULE, name: str = "news", based_on: int | None = None) -> dict[str, Any]:
    return extraction_jobs.save_rule(settings, name, source, based_on)


def test_a_rule_is_listed_with_what_it_is_for(settings: Settings) -> None:
    assert list_rules(settings) == []
    assert save(settings) == {"name": "news", "before": 0, "after": 1}
    assert save(settings) == {"name": "news", "before": 1, "after": 1}, "the same text is no new version"
    save(settings, name="b")
    (rules_folder(settings)._folder / "b.toml").write_text("urls = ")
    damaged, row = list_rules(settings)
    assert (damaged.name, damaged.version, "not valid TOML" in damaged.error) == ("b", 0, True)
    assert (row.name, row.version, row.host, row.fields, row.links, row.error) == ("news", 1, "news.example", ("title",), 1, "")
    assert row.urls == r"https?://news\.example/.*"
    assert row.written_at == rule_history(settings, "news")[0].written_at > 0
    assert extraction_jobs.list_rules(settings) == [asdict(damaged), asdict(row)]


def test_a_rule_is_shown_with_its_versions(settings: Settings) -> None:
    save(settings)
    save(settings, OTHER)
    shown = extraction_jobs.show_rule(settings, "news")
    assert (shown["source"], shown["current"], shown["version"]) == (OTHER, 2, 2)
    assert [(state["version"], state["in_use"]) for state in shown["history"]] == [(1, False), (2, True)]
    assert shown["form"] == extraction_jobs.form_of_source(settings, OTHER)
    assert extraction_jobs.show_rule(settings, "news", 1)["source"] == RULE
    remove_rule(settings, "news")
    removed = show_rule(settings, "news")
    assert (removed.rule.source, removed.current, removed.summary.version) == (OTHER, 0, 2)


def test_a_rule_that_never_was(settings: Settings) -> None:
    for ask in (
        lambda: show_rule(settings, "news"),
        lambda: rule_history(settings, "news"),
        lambda: remove_rule(settings, "news"),
    ):
        with pytest.raises(MissingRuleError, match="'news'"):
            ask()
    save(settings)
    with pytest.raises(MissingRuleError, match="no version 7"):
        show_rule(settings, "news", 7)


def test_a_rule_is_put_back_and_comes_back_after_its_removal(settings: Settings) -> None:
    save(settings)
    save(settings, OTHER)
    assert extraction_jobs.restore_rule(settings, "news", 1, None) == {"name": "news", "before": 2, "after": 3}
    assert extraction_jobs.remove_rule(settings, "news", None) == {"name": "news", "before": 3, "after": 0}
    assert list_rules(settings) == []
    assert extraction_jobs.restore_rule(settings, "news", 2, None) == {"name": "news", "before": 0, "after": 4}
    assert show_rule(settings, "news").rule.source == OTHER


@pytest.mark.parametrize(
    "change",
    [
        lambda settings, based_on: save(settings, OTHER, based_on=based_on),
        lambda settings, based_on: extraction_jobs.restore_rule(settings, "news", 1, based_on),
        lambda settings, based_on: extraction_jobs.remove_rule(settings, "news", based_on),
    ],
    ids=["save", "restore", "remove"],
)
def test_the_second_of_two_people_is_told(change: Callable[[Settings, int], dict[str, Any]], settings: Settings) -> None:
    save(settings)
    save(settings, RULE + "# more\n", based_on=1)
    for based_on in (0, 1):
        with pytest.raises(ConflictError, match="load it again"):
            change(settings, based_on)
    assert show_rule(settings, "news").current == 2
    assert change(settings, 2)["before"] == 2


def test_what_was_written_by_hand_is_not_lost(settings: Settings) -> None:
    folder = rules_folder(settings)._folder
    folder.mkdir(parents=True)
    (folder / "news.toml").write_text(RULE)
    assert show_rule(settings, "news").current == 0
    assert save(settings, OTHER) == {"name": "news", "before": 1, "after": 2}
    assert extraction_jobs.show_rule(settings, "news", 1)["source"] == RULE


def test_a_rule_that_cannot_be_used_is_not_saved(settings: Settings) -> None:
    for source in ("urls = ", "name = 'other'\n" + RULE):
        with pytest.raises(ClassifyError):
            save(settings, source)
    assert list_rules(settings) == []


def test_changes_are_taken_back_together_or_not_at_all(settings: Settings) -> None:
    save(settings)
    save(settings, OTHER)
    save(settings, name="new")
    changed = [("news", 1, 2), ("new", 0, 1)]
    with pytest.raises(UndoError, match="'gone' was changed since"):
        extraction_jobs.take_back(settings, [*changed, ("gone", 0, 1)])
    assert (show_rule(settings, "news").rule.source, len(list_rules(settings))) == (OTHER, 2)
    extraction_jobs.take_back(settings, changed)
    assert (show_rule(settings, "news").rule.source, [row.name for row in list_rules(settings)]) == (RULE, ["news"])


def test_changes_are_recorded_with_their_inverse(work: ExtractionWork, store: Store) -> None:
    change, number = work.save(ANNA, "news", RULE)
    assert (change, number > 0) == ({"name": "news", "before": 0, "after": 1}, True)
    assert work.save(ANNA, "news", RULE, 1)[1] == 0, "nothing was changed"
    work.save(ANNA, "news", OTHER)
    work.restore(ANNA, "news", 1)
    work.remove(ANNA, "news", 3)
    entries = store.audit.page()[::-1]
    assert [(entry.action, entry.subject, entry.detail) for entry in entries] == [
        ("extraction.added", "news", "version 1"),
        ("extraction.added", "news", "version 2"),
        ("extraction.restored", "news", "version 3"),
        ("extraction.removed", "news", "was version 3"),
    ]
    assert entries[0].entry_id == number
    assert entries[-1].undo == {"kind": "extraction", "rules": [["news", 3, 0]]}


def test_rules_are_shown_with_what_they_read(work: ExtractionWork, store: Store) -> None:
    work.save(ANNA, "news", RULE)
    work.save(ANNA, "quiet", RULE)
    counted = RuleMatches(pages=3)
    store.rule_matches.add({"news": counted})
    news, quiet = work.rules()
    assert (news["pages"], quiet["pages"]) == (3, 0)
    assert (work.rule("news")["pages"], work.rule("news", 1)["source"]) == (3, RULE)


def test_a_form_is_written_as_a_rule_and_read_again(work: ExtractionWork) -> None:
    form = work.form(RULE)
    assert [row["name"] for row in form["fields"]] == ["title"]
    assert work.form(work.source(form)) == form
    with pytest.raises(ClassifyError, match="two fields are called 'title'"):
        work.source({**form, "fields": form["fields"] * 2})


def test_expressions_for_an_address_are_proposed(work: ExtractionWork) -> None:
    found = work.suggested_urls("news.example/a/b")
    assert len(found) == 3
    assert all(r"news\.example" in one for one in found)
    assert work.suggested_urls("http://[") == []

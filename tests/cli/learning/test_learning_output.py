"""What `learn`, `rules` and `fingerprints` print: `gatewayfilter.cli.learning.learn_report`,
`gatewayfilter.cli.learning.model_commands`, `gatewayfilter.cli.learning.extraction_rule_commands`,
`gatewayfilter.cli.learning.fingerprint_commands`.
"""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.errors import MissingRuleError
from gatewayfilter.interfaces import RuleMatches
from gatewayfilter.learn import LoweredWord
from gatewayfilter.learn.review.false_blocks import FalseBlockRow
from gatewayfilter.model import Fingerprint
from gatewayfilter.use_cases.learning.extraction_rules import RuleChange, RuleSummary
from tests.cli.test_command_doubles import MOMENT, SETTINGS, Doubled, called, table, texts

OPINION = "gatewayfilter.use_cases.operation.second_opinion"
RULES = "gatewayfilter.use_cases.learning.extraction_rules"
AT = "2023-11-14 22:13:20"


def test_false_blocks_and_lowered_words_are_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Any] = [[], []]
    asked: list[Any] = []

    def false_blocks(store: object, since: float) -> list[Any]:
        asked.append((store, since))
        return found

    monkeypatch.setattr(time, "time", lambda: MOMENT)
    monkeypatch.setattr(f"{OPINION}.false_blocks", false_blocks)
    none = "No page was decided in the last {}: nothing is known of false blocks.\n"
    assert texts(Doubled("store"), "learn", "report") == (0, none.format("12 weeks"), "")
    assert texts(Doubled("store"), "learn", "report", "--weeks", "1")[1] == none.format("1 week")
    assert asked == [("store", MOMENT - 12 * 604_800.0), ("store", MOMENT - 604_800.0)]
    found[0] = [FalseBlockRow("2026-W47", "ads", 8, 1, 3), FalseBlockRow("", "", 0, 0, 1)]
    word = LoweredWord("ads", "buy", 0.256, 4, 1)
    found[1] = [word] * 20
    rows = table(texts(Doubled(), "learn", "report")[1])
    assert rows[:5] == [
        ["week", "category", "blocked, decided", "false blocks", "rate", "decided, not blocked"],
        ["2026-W47", "ads", "8", "1", "12.5%", "3"],
        ["all", "all", "0", "0", "1"],
        ["Words that weigh less in second looks, by rejected pages:"],
        ["category", "word", "weighs", "sites rejected", "sites approved"],
    ]
    assert rows[5:] == [["ads", "buy", "26%", "4", "1"]] * 20
    for more, told in ((1, "and 1 more word: --json shows all"), (2, "and 2 more words: --json shows all")):
        found[1] = [word] * (20 + more)
        rows = table(texts(Doubled(), "learn", "report")[1])
        assert (len(rows), rows[-1]) == (26, [told])
    assert len(called(Doubled(), "learn", "report", "--json").json["lowered"]) == 22
    found[1] = []
    assert "Words" not in texts(Doubled(), "learn", "report")[1]


MODEL = SimpleNamespace(trained_at=MOMENT, examples=1, harmful=1_000, auc=0.98765)


def test_a_model_is_trained_and_used_where_it_is_good(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    used, asked = [True], []

    def trained(settings: object, store: object, examples: list[Any] | None, now: float) -> tuple[SimpleNamespace, bool]:
        asked.append((settings, store, None if examples is None else [(one.text, one.harmful) for one in examples], now))
        return MODEL, used[0]

    monkeypatch.setattr(time, "time", lambda: MOMENT)
    monkeypatch.setattr(f"{OPINION}.trained", trained)
    monkeypatch.setattr(f"{OPINION}.summary", lambda model, *, used: {"auc": model.auc, "used": used})
    code, out, err = texts(Doubled("store"), "learn", "train")
    assert (code, table(out), err) == (
        0,
        [
            ["trained", "2023-11-14 22:13"],
            ["on", "1 text, 1,000 of them harmful"],
            ["area under the curve", "0.988 by cross-validation (0.5 is chance, 1 is perfect)"],
            ["It is used from now on, where the words are not clear. A running filter applies it within a second."],
        ],
        "",
    )
    used[0] = False
    file = tmp_path / "decided.jsonl"
    file.write_text('{"text": "a", "label": "ads"}\n{"text": "b", "label": ""}\n')
    code, out, err = texts(Doubled("store"), "learn", "train", "--from", file, "--from", file)
    assert (code, len(table(out))) == (1, 3)
    assert err.startswith("gatewayfilter: that is little better than chance (at least 0.")
    answer = called(Doubled("store"), "learn", "train", "--json")
    assert (answer.code, answer.json) == (1, {"auc": 0.98765, "used": False})
    assert asked == [
        (SETTINGS, "store", None, MOMENT),
        (SETTINGS, "store", [("a", True), ("b", False)] * 2, MOMENT),
        (SETTINGS, "store", None, MOMENT),
    ]
    file.write_bytes(b"ok\xff")
    assert called(Doubled(), "learn", "train", "--from", file).complains() == f"{file} is not UTF-8 text: byte 2"


def test_the_model_is_shown_and_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Any] = [MODEL]
    monkeypatch.setattr(f"{OPINION}.own_model", lambda _settings: SimpleNamespace(path="p"))
    monkeypatch.setattr("gatewayfilter.classify.LinearModel.load", lambda _path: found[0])
    monkeypatch.setattr(f"{OPINION}.summary", lambda model, *, used: {"is": model is not None, "used": used})
    assert texts(Doubled(), "learn", "status")[1].startswith("\ntrained  ")
    assert called(Doubled(), "learn", "status", "--json").json == {"is": True, "used": True}
    found[0] = None
    assert texts(Doubled(), "learn", "status") == (1, "There is no second opinion: nothing was trained.\n", "")
    assert called(Doubled(), "learn", "status", "--json").code == 1
    for removed, told in ((True, "The second opinion is off."), (False, "There was no second opinion.")):
        monkeypatch.setattr(f"{OPINION}.remove", lambda _settings, removed=removed: removed)
        context = Doubled()
        assert texts(context, "learn", "off") == (0 if removed else 1, f"{told}\n", "")
        assert [change.action for change in context.recorded] == ["model.off"] * removed
        assert called(Doubled(), "learn", "off", "--json").json == {"removed": removed}


RULE = SimpleNamespace(name="news", version=3, urls="https://news.example/.*", source='urls = "x"\n')


def test_rules_are_listed_with_the_pages_that_they_read(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [RuleSummary("news", 3, "n.example/.*", "n.example", ("title", "body"), 2), RuleSummary("idle", 1, "i.example/.*")]
    store = SimpleNamespace(rule_matches=SimpleNamespace(all=lambda: {"news": RuleMatches(9, 4, MOMENT)}))
    monkeypatch.setattr(f"{RULES}.list_rules", lambda _settings: rows)
    code, out, _ = texts(Doubled(store), "rules", "list")
    assert (code, table(out)) == (
        0,
        [
            ["rule", "version", "for", "fields", "pages", "nothing found", "last page"],
            ["news", "3", "n.example/.*", "title, body", "9", "4", AT],
            ["idle", "1", "i.example/.*", "0", "0"],
        ],
    )
    rows.append(RuleSummary("bad", error="no field"))
    code, out, _ = texts(Doubled(store), "rules", "list")
    assert (code, table(out)[3]) == (1, ["bad", "no field"])
    answer = called(Doubled(store), "rules", "list", "--json")
    assert answer.code == 1
    assert answer.json[0] == {
        "name": "news",
        "version": 3,
        "urls": "n.example/.*",
        "fields": ["title", "body"],
        "links": 2,
        "pages": 9,
        "empty": 4,
        "last_at": MOMENT,
    }
    assert answer.json[2] == {"name": "bad", "error": "no field"}


def test_rules_are_added_restored_and_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    saved: list[Any] = []

    def save(settings: object, rule: Any) -> RuleChange:
        saved.append((settings, rule))
        return RuleChange(RULE, rule.name, 2, 2 if rule.name == "same" else 3)  # type: ignore[arg-type]

    monkeypatch.setattr(
        "gatewayfilter.extraction.rule_folder.read_rule_file", lambda path: SimpleNamespace(**{**vars(RULE), "name": path.stem})
    )
    monkeypatch.setattr(f"{RULES}.save_rule", save)
    context = Doubled()
    line = "news is in use, version 3\n"
    assert texts(context, "rules", "add", "news.toml", "same.toml") == (0, line * 2, "")
    assert [(change.action, change.subject) for change in context.recorded] == [("extraction.added", "news")]
    assert context.recorded[0].undo is not None
    document = [{"name": "news", "version": 3, "urls": RULE.urls}]
    context = Doubled()
    assert called(context, "rules", "add", "same.toml", "--json").json == document
    assert (context.recorded, [rule.name for _, rule in saved]) == ([], ["news", "same", "same"])
    asked: list[Any] = []

    def restored(*arguments: object) -> RuleChange:
        asked.append(arguments)
        return RuleChange(RULE, "news", 2, 3)  # type: ignore[arg-type]

    monkeypatch.setattr(f"{RULES}.restore_rule", restored)
    context = Doubled()
    assert texts(context, "rules", "restore", "news", "1") == (0, "news is in use as it was in version 1, now version 3\n", "")
    assert called(Doubled(), "rules", "restore", "news", "1", "--json").json == document[0]
    assert (asked[0], context.recorded[0].action) == ((SETTINGS, "news", 1), "extraction.restored")

    def remove(_settings: object, name: str) -> RuleChange:
        if name == "nosuch":
            raise MissingRuleError("no")
        return RuleChange(None, name, 3, 0)

    monkeypatch.setattr(f"{RULES}.remove_rule", remove)
    context = Doubled()
    assert texts(context, "rules", "remove", "news", "news", "old") == (0, "news is out of use\nold is out of use\n", "")
    assert (context.recorded[0].action, context.recorded[0].subject) == ("extraction.removed", "news, old")
    context = Doubled()
    assert texts(context, "rules", "remove", "nosuch") == (1, "", "gatewayfilter: no rule 'nosuch'\n")
    assert context.recorded == []
    answer = called(Doubled(), "rules", "remove", "news", "nosuch", "--json")
    assert (answer.code, answer.json) == (1, {"removed": ["news"], "missing": ["nosuch"]})


def test_a_rule_and_its_history_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, found = [], SimpleNamespace(rule=RULE, current=3)

    def show(*arguments: object) -> SimpleNamespace:
        asked.append(arguments)
        return found

    monkeypatch.setattr(f"{RULES}.show_rule", show)
    assert texts(Doubled(), "rules", "show", "news") == (0, 'urls = "x"\n', "")
    found.current = 0
    assert texts(Doubled(), "rules", "show", "news", "--version", "2")[0] == 0
    assert asked == [(SETTINGS, "news", 0), (SETTINGS, "news", 2)]
    code, _, err = texts(Doubled(), "rules", "show", "news")
    assert (code, err) == (1, "gatewayfilter: the rule 'news' was removed; its newest version: --version 3\n")
    versions = [
        SimpleNamespace(version=1, written_at=MOMENT, in_use=False),
        SimpleNamespace(version=2, written_at=MOMENT, in_use=True),
    ]
    monkeypatch.setattr(f"{RULES}.rule_history", lambda _settings, _name: versions)
    assert table(texts(Doubled(), "rules", "history", "news")[1]) == [["version", "written"], ["1", AT], ["2", AT, "in use"]]
    assert len(called(Doubled(), "rules", "history", "news", "--json").json) == 2


class Fingerprints:
    """Fingerprints on no disk, with the size of each transaction."""

    def __init__(self) -> None:
        self.written: list[list[Fingerprint]] = []

    @property
    def fingerprints(self) -> Fingerprints:
        return self

    def put_all(self, known: list[Fingerprint]) -> None:
        self.written.append(known)

    def stats(self) -> dict[str, int]:
        return {"pages": 1, "harmful_pages": 2_000}


def test_known_images_are_taken_and_bad_lines_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, store = tmp_path / "known.md5", Fingerprints()
    good = [f"{number:032x}" for number in range(1_002)]
    arguments = ("fingerprints", "images", file, "--category", "adult")
    monkeypatch.setattr(time, "time", lambda: MOMENT)
    file.write_text(f"# a list\n\n  {good[0]}\n{good[1].upper()}, of a site\n{good[2]};x\n{good[2]}\n")
    assert texts(Doubled(store), *arguments) == (0, "4 images taken, 0 lines rejected.\n", "")
    (known,) = store.written
    assert len({one.content for one in known}) == 3
    first = known[0]
    assert (first.classification.category, first.judged_at, first.expires_at) == ("adult", MOMENT, MOMENT + 3_650 * 86_400)
    file.write_text("\n".join([*good, "short", f"{good[0]}x", "y" * 61, "z"]))
    store.written.clear()
    code, out, err = texts(Doubled(store), *arguments, "--days", "2")
    assert (code, out) == (0, "1,002 images taken, 4 lines rejected.\n")
    assert err == f"  line 1003: no MD5: short\n  line 1004: no MD5: {good[0]}x\n  line 1005: no MD5: {'y' * 60}\n"
    assert ([len(batch) for batch in store.written], store.written[0][0].expires_at) == ([1_000, 2], MOMENT + 172_800)
    file.write_text("short\n")
    assert texts(Doubled(store), *arguments)[0] == 1
    answer = called(Doubled(store), *arguments, "--json")
    assert answer.json == {"taken": 0, "rejected": 1, "samples": [[1, "short"]]}
    file.write_text("")
    assert texts(Doubled(store), *arguments)[:2] == (0, "0 images taken, 0 lines rejected.\n")
    assert (
        called(Doubled(store), "fingerprints", "images", file, "--category", "nosuch").complains()
        == "there is no category 'nosuch'"
    )


def test_fingerprints_are_counted() -> None:
    assert table(texts(Doubled(Fingerprints()), "fingerprints", "stats")[1]) == [
        ["what", "count"],
        ["pages", "1"],
        ["harmful pages", "2,000"],
    ]
    assert called(Doubled(Fingerprints()), "fingerprints", "stats", "--json").json == {"pages": 1, "harmful_pages": 2_000}

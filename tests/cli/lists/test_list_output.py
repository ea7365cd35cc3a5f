"""What `gatewayfilter list` prints, in full: `gatewayfilter.cli.lists.list_commands`, `gatewayfilter.cli.lists.list_groups`,
`gatewayfilter.cli.lists.list_search`, `gatewayfilter.cli.lists.list_stats`, `gatewayfilter.cli.lists.list_import_export`.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.cli.lists.list_import_export import export_entries, import_entries
from gatewayfilter.model import EntryKind, LearnedEntry, ListAction, ManualRule
from gatewayfilter.use_cases.lists.list_counts import LearnedCount, ListCounts, OwnCount
from gatewayfilter.use_cases.lists.list_search import FoundLine, FoundRule
from gatewayfilter.use_cases.lists.patterns import Pattern, verb_of
from gatewayfilter.use_cases.lists.rule_editing import AddedRule, RemovedRules, RuleGroup, RuleValues, SwitchedRules
from gatewayfilter.use_cases.lists.rule_transfer import RejectedLine, RuleExport, RulesRead
from tests.cli.test_command_doubles import MOMENT, SETTINGS, Doubled, called, table, texts

LIST = "gatewayfilter.cli.lists"
DAY = "2023-11-14 22:13"
RULE = ManualRule(7, ListAction.BLOCK, EntryKind.DOMAIN, ".a.example")
PATTERN = Pattern(EntryKind.DOMAIN, ".a.example")
LEARNED = LearnedEntry("l.example/", ListAction.BLOCK, "ads", "http://l.example/", "score 4", 2.0, MOMENT)


@pytest.fixture(autouse=True)
def _now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: MOMENT)


def double(monkeypatch: pytest.MonkeyPatch, name: str, result: object) -> list[Any]:
    """Has a function return this; returns its calls."""
    calls: list[Any] = []

    def answer(*arguments: object, **named: object) -> object:
        calls.append((*arguments, *named.items()))
        return result

    monkeypatch.setattr(name, answer)
    return calls


def test_entries_are_added_as_the_options_say(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = double(monkeypatch, f"{LIST}.list_commands.read_wanted", PATTERN)
    adds = double(monkeypatch, f"{LIST}.list_commands.add_rules", [AddedRule(RULE, PATTERN, "", "")])
    plain = f"7: blocks {PATTERN.describe(ListAction.BLOCK)}\n"
    assert texts(Doubled("store"), "list", "add", "a.example") == (0, plain, "")
    assert reads == [("a.example", ListAction.BLOCK, ("exact", False), ("force", False))]
    assert adds == [("store", [PATTERN], RuleValues(ListAction.BLOCK, "", "", None, ""))]
    off = AddedRule(replace(RULE, enabled=False), PATTERN, "a.example", "\u0430pple.example")
    adds = double(monkeypatch, f"{LIST}.list_commands.add_rules", [off])
    options = (
        "--splice",
        "--exact",
        "--comment",
        "c",
        "--group",
        "g",
        "--for",
        "client:tv",
        "--force",
        "--expires",
        "2030-01-01T00:00:00+00:00",
    )
    assert texts(Doubled("store"), "list", "add", "a.example", *options) == (
        0,
        (
            f"7: {verb_of(ListAction.SPLICE)} {PATTERN.describe(ListAction.SPLICE)} until 2030-01-01 00:00 for client:tv\n"
            "   (this page alone; for the whole site: a.example)\n"
        ),
        (
            "gatewayfilter: '\u0430pple.example' mixes letters of several alphabets; is that the host you mean?\n"
            "gatewayfilter: the group 'g' is switched off; `gatewayfilter list enable --group g`\n"
        ),
    )
    assert reads[1][1:] == (ListAction.SPLICE, ("exact", True), ("force", True))
    assert adds[0][2] == RuleValues(ListAction.SPLICE, "c", "g", 1_893_456_000.0, "client:tv")
    assert called(Doubled("store"), "list", "add", "a.example", "--json").json[0]["rule_id"] == 7
    assert "is in the past" in called(Doubled(), "list", "add", "a.example", "--expires", "2023-11-14T22:13:20+00:00").complains()
    assert "--allow and --block contradict each other" in called(Doubled(), "list", "add", "a", "--allow", "--block").complains()


def test_entries_are_removed_and_switched(monkeypatch: pytest.MonkeyPatch) -> None:
    forgets = double(monkeypatch, f"{LIST}.list_commands.forget_learned", RemovedRules(1, ()))
    removes = double(monkeypatch, f"{LIST}.list_commands.remove_rules", RemovedRules(2, ("b",)))
    assert texts(Doubled("store"), "list", "remove", "a", "--learned") == (0, "1 entry removed.\n", "")
    assert texts(Doubled("store"), "list", "remove", "a", "b", "--group", "g") == (
        1,
        "2 entries removed.\n",
        "gatewayfilter: there is no entry 'b'\n",
    )
    assert (forgets, removes) == ([("store", ("a",))], [("store", ("a", "b"), "g")])
    answer = called(Doubled("store"), "list", "remove", "b", "--json")
    assert (answer.code, answer.json, answer.err) == (1, {"removed": 2, "missing": ["b"]}, "")
    switches = double(monkeypatch, f"{LIST}.list_groups.switch_rules", SwitchedRules(1, 2_000, ()))
    assert texts(Doubled("store"), "list", "enable", "a") == (0, "1 entry on, 2,000 changed.\n", "")
    assert texts(Doubled("store"), "list", "disable", "--group", "g") == (0, "1 entry off, 2,000 changed.\n", "")
    assert switches == [("store", ("a",), None, ("enabled", True)), ("store", (), "g", ("enabled", False))]
    double(monkeypatch, f"{LIST}.list_groups.switch_rules", SwitchedRules(0, 0, ("x",)))
    assert texts(Doubled(), "list", "enable", "x")[::2] == (1, "gatewayfilter: there is no entry 'x'\n")
    assert texts(Doubled(), "list", "enable", "--group", "x")[::2] == (1, "gatewayfilter: x has no entries\n")
    answer = called(Doubled(), "list", "disable", "x", "--json")
    assert (answer.code, answer.json["missing"]) == (1, ["x"])
    assert "name entries, or a group with --group" in called(Doubled(), "list", "enable").complains()


def test_groups_are_on_off_or_both(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = [RuleGroup("a", 1_000, 1_000), RuleGroup("b", 2_000, 1_000), RuleGroup("c", 3, 0)]
    double(monkeypatch, f"{LIST}.list_groups.rule_groups", groups)
    assert table(texts(Doubled(), "list", "groups")[1]) == [
        ["group", "entries", "on"],
        ["a", "1,000", "on"],
        ["b", "2,000", "1,000 of 2,000"],
        ["c", "3", "off"],
    ]
    assert called(Doubled(), "list", "groups", "--json").json[2] == {"group": "c", "entries": 3, "enabled": 0}
    double(monkeypatch, f"{LIST}.list_groups.rule_groups", [])
    none = "There are no groups. Make one: gatewayfilter list add --group NAME PATTERN\n"
    assert texts(Doubled(), "list", "groups") == (0, none, "")


def test_entries_and_what_was_learned_are_shown() -> None:
    allowed = replace(RULE, rule_id=8, action=ListAction.ALLOW, group="g", comment="c", scope="client:tv", expires_at=MOMENT)
    rules = [RULE, replace(allowed, enabled=False), replace(RULE, rule_id=9, expires_at=MOMENT + 60)]
    learned = [
        replace(LEARNED, expires_at=MOMENT + 60),
        replace(LEARNED, url="http://k.example/", action=ListAction.ALLOW, created_at=1.0),
    ]
    store = SimpleNamespace(lists=SimpleNamespace(rules=lambda: rules, learned=lambda: learned))
    head = ["id", "on", "action", "kind", "pattern", "for", "group", "expires", "comment"]
    first, second = (
        ["7", "yes", "block", "domain", "a.example"],
        ["8", "no", "allow", "domain", "a.example", "client:tv", "g", f"{DAY} (expired)", "c"],
    )
    third = ["9", "yes", "block", "domain", "a.example", "2023-11-14 22:14"]
    assert table(texts(Doubled(store), "list", "show")[1]) == [head, first, second, third]
    assert table(texts(Doubled(store), "list", "show", "--action", "allow")[1]) == [head, second]
    assert table(texts(Doubled(store), "list", "show", "--group", "g")[1]) == [head, second]
    none = "There are no entries. Add one: gatewayfilter list add PATTERN\n"
    assert texts(Doubled(store), "list", "show", "--group", "g", "--action", "block")[1] == none
    assert [rule["rule_id"] for rule in called(Doubled(store), "list", "show", "--json").json] == [7, 8, 9]
    assert table(texts(Doubled(store), "list", "show", "--learned")[1]) == [
        ["action", "category", "url", "expires", "evidence"],
        ["allow", "ads", "http://k.example/", f"{DAY} (expired)", "score 4"],
        ["block", "ads", "http://l.example/", "2023-11-14 22:14", "score 4"],
    ]
    only = called(Doubled(store), "list", "show", "--learned", "--action", "block", "--json").json
    assert [entry["url"] for entry in only] == ["http://l.example/"]
    learned.clear()
    assert texts(Doubled(store), "list", "show", "--learned")[1] == "Nothing was learned yet.\n"


class Result(SimpleNamespace):
    """The result of a search; true when anything was found."""

    def __bool__(self) -> bool:
        return bool(self.own or self.learned or self.lists)


def test_a_search_tells_where_and_what(monkeypatch: pytest.MonkeyPatch) -> None:
    line = FoundLine("easylist", True, "ads", "block", 4, "||a.example^", "||a.example^")
    result = Result(
        own=(
            FoundRule(replace(RULE, group="g", comment="c"), True),
            FoundRule(replace(RULE, enabled=False), False),
            FoundRule(replace(RULE, expires_at=MOMENT), True),
            FoundRule(replace(RULE, expires_at=MOMENT + 1), True),
        ),
        learned=(LEARNED, replace(LEARNED, category="", action=ListAction.ALLOW)),
        lists=(
            line,
            replace(line, enabled=False, entry=""),
            replace(line, text="x", entry=".b.example"),
            replace(line, text="x", entry="b.example"),
            replace(line, text="x", entry="b.example/y"),
            replace(line, text="x", entry="b.example/*"),
        ),
        unreadable=("easylist cannot be read",),
    )
    calls = double(monkeypatch, "gatewayfilter.use_cases.lists.list_search.search_lists", result)
    code, out, err = texts(Doubled("store"), "list", "search", "a.example")
    block = PATTERN.describe(ListAction.BLOCK)
    assert (code, err) == (0, "gatewayfilter: easylist cannot be read\n")
    assert [row[:3] for row in table(out)[:5]] == [
        ["where", "means", "line"],
        ["own", "block", "7"],
        ["own", "block (off)", "7"],
        ["own", "block (expired)", "7"],
        ["own", "block", "7"],
    ]
    assert [row[3] for row in table(out)[1:5]] == [f"{block} (group g, c)", f"{block} [by its text]", block, block]
    assert table(out)[5:8] == [
        ["learned: ads", "block", "http://l.example/"],
        ["learned: harmless", "allow", "http://l.example/"],
        ["easylist", "block", "4", "||a.example^"],
    ]
    assert table(out)[8] == ["easylist (off)", "block", "4", "||a.example^"]
    kinds = (
        (EntryKind.DOMAIN, ".b.example"),
        (EntryKind.HOST, "b.example"),
        (EntryKind.URL, "b.example/y"),
        (EntryKind.PREFIX, "b.example/*"),
    )
    assert [row[3:] for row in table(out)[9:]] == [["x", f"→ {Pattern(kind, key).describe()}"] for kind, key in kinds]
    assert (calls[0][:3], calls[0][3]) == ((SETTINGS, "store", "a.example"), ("partial", False))
    answer = called(Doubled("store"), "list", "search", "a", "--partial", "--json")
    assert (answer.code, len(answer.json["own"]), len(answer.json["learned"]), len(answer.json["lists"])) == (0, 4, 2, 6)
    assert calls[1][3] == ("partial", True)
    double(
        monkeypatch, "gatewayfilter.use_cases.lists.list_search.search_lists", Result(own=(), learned=(), lists=(), unreadable=())
    )
    none = "a is on no list."
    assert texts(Doubled(), "list", "search", "a") == (1, f"{none} (--partial searches for a part of a line.)\n", "")
    assert texts(Doubled(), "list", "search", "a", "--partial") == (1, f"{none}\n", "")
    assert called(Doubled(), "list", "search", "a", "--json").code == 1


def test_entries_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    info: Any = SimpleNamespace(
        blacklist=1_000, whitelist=2_000, splicelist=3, adblock_rules=4_000, created_at=MOMENT, size_bytes=2_500_000
    )
    counts = ListCounts((OwnCount("block", "domain", 5_000),), 0, 0, (LearnedCount("block", "ads", 6_000),), info)
    calls = double(monkeypatch, "gatewayfilter.use_cases.lists.list_counts.list_counts", counts)
    rows = [
        ["where", "action", "what", "entries"],
        ["own", "block", "domain", "5,000"],
        ["learned", "block", "ads", "6,000"],
        ["snapshot", "block", "blacklist", "1,000"],
        ["snapshot", "allow", "whitelist", "2,000"],
        ["snapshot", "splice", "splicelist", "3"],
        ["snapshot", "Adblock rules", "4,000"],
        [f"Snapshot of {DAY}, 2.5 MB."],
    ]
    assert table(texts(Doubled("store"), "list", "stats")[1]) == rows
    assert calls == [(SETTINGS, "store", MOMENT)]
    double(
        monkeypatch, "gatewayfilter.use_cases.lists.list_counts.list_counts", replace(counts, own_expired=7_000, own_off=8_000)
    )
    assert table(texts(Doubled(), "list", "stats")[1])[2:4] == [["own", "expired", "7,000"], ["own", "switched off", "8,000"]]


def test_an_import_names_five_bad_lines_and_counts_the_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "mine.txt"
    file.write_text("a.example\nb.example\n")
    found = [RulesRead((RULE,), ())]
    asked: list[Any] = []

    def read(text: str, values: RuleValues, name: str, *, force: bool, report: Any) -> RulesRead:
        asked.append((text, values, name, force))
        report(2)
        return found[0]

    transfer = "gatewayfilter.use_cases.lists.rule_transfer"
    monkeypatch.setattr(f"{transfer}.read_rules", read)
    imports = double(monkeypatch, f"{transfer}.import_rules", 1_000)
    assert texts(Doubled("store"), "list", "import", file) == (0, "1 entry read, 1,000 new or changed.\n", "")
    assert asked == [("a.example\nb.example\n", RuleValues(ListAction.BLOCK, "", "", None), str(file), False)]
    assert imports == [("store", (RULE,))]
    options = ("--allow", "--comment", "c", "--group", "g", "--expires", "2030-01-01T00:00:00+00:00", "--force", "--json")
    assert called(Doubled("store"), "list", "import", file, *options).json == {"read": 1, "changed": 1_000, "rejected": []}
    assert asked[1][1:] == (RuleValues(ListAction.ALLOW, "c", "g", 1_893_456_000.0), str(file), True)
    for bad, more in ((5, ""), (6, "gatewayfilter: and 1 more bad line\n"), (7, "gatewayfilter: and 2 more bad lines\n")):
        found[0] = RulesRead((RULE,), tuple(RejectedLine(line, "?", "no host") for line in range(1, bad + 1)))
        named = "".join(f"gatewayfilter: {file}:{line}: '?': no host\n" for line in range(1, 6))
        assert texts(Doubled("store"), "list", "import", file)[2] == named + more
    monkeypatch.setattr(f"{transfer}.MOST_RULES", 1)
    found[0] = RulesRead((RULE, RULE), ())
    refused = called(Doubled("store"), "list", "import", file).complains()
    assert refused.startswith(f"{file} holds 2 entries, and every worker would keep them in memory")
    assert called(Doubled("store"), "list", "import", file, "--force").code == 0
    found[0] = RulesRead((RULE,), ())
    assert called(Doubled("store"), "list", "import", file).code == 0
    reports: list[Any] = []
    monkeypatch.setattr(f"{LIST}.list_import_export.showing", lambda **how: _Noting(reports, how))
    import_entries.main([str(file)], standalone_mode=False, obj=Doubled("store"))
    assert reports == [
        {"quiet": False, "patience_s": 1.0},
        (f"reading {file}", 0, 0),
        (f"reading {file}", 2, 3),
        ("storing 1 entry", 0, 0),
    ]


class _Noting:
    """A display of progress that notes what it is told."""

    def __init__(self, reports: list[Any], how: dict[str, Any]) -> None:
        self._reports = reports
        reports.append(how)

    def __enter__(self) -> Any:
        return lambda *given: self._reports.append(given)

    def __exit__(self, *_: object) -> None: ...


def test_an_export_writes_what_is_wanted_and_counts_what_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    page = replace(RULE, kind=EntryKind.URL, pattern="a.example/x")
    rules = [RULE, page]
    exports = double(monkeypatch, "gatewayfilter.use_cases.lists.rule_transfer.exported_rules", rules)
    code, out, err = texts(
        Doubled("store"), "list", "export", "--format", "domains", "--action", "block", "--group", "g", "--learned"
    )
    assert (code, "a.example" in out, err) == (0, True, "gatewayfilter: 1 entry left out that domains cannot express\n")
    assert exports == [("store", RuleExport("domains", ListAction.BLOCK, "g", True), MOMENT)]
    code, out, _ = texts(Doubled("store"), "list", "export", "--format", "domains", "--left-out")
    assert (code, out.startswith("block url a.example/x: "), out.count("\n")) == (0, True, 1)
    assert exports[1][1] == RuleExport("domains", None, None, False)
    reports: list[Any] = []
    monkeypatch.setattr(f"{LIST}.list_import_export.showing", lambda **how: _Noting(reports, how))
    rules[:] = [replace(RULE, pattern=f".a{number}.example") for number in range(2_500)]
    out = texts(Doubled("store"), "list", "export", "--format", "domains")[1]
    assert (out.count(".example"), reports) == (
        2_500,
        [{"quiet": True, "patience_s": 1.0}, ("exporting", 1_000, 0), ("exporting", 2_000, 0)],
    )


def test_the_progress_of_an_export_is_seen_beside_a_file_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    reports: list[Any] = []
    double(monkeypatch, "gatewayfilter.use_cases.lists.rule_transfer.exported_rules", [])
    monkeypatch.setattr(f"{LIST}.list_import_export.showing", lambda **how: _Noting(reports, how))
    for err, out in ((True, False), (True, True), (False, False)):
        monkeypatch.setattr("sys.stderr.isatty", lambda err=err: err)
        monkeypatch.setattr("sys.stdout.isatty", lambda out=out: out)
        export_entries.main([], standalone_mode=False, obj=Doubled("store"))
    assert [how["quiet"] for how in reports] == [False, True, True]

"""What `gatewayfilter source` and `publish` print, in full: `gatewayfilter.cli.sources.source_commands`,
`gatewayfilter.cli.sources.source_reports`, `gatewayfilter.cli.sources.source_preview`,
`gatewayfilter.cli.sources.publish_command`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.cli.sources.source_reports import complain_of_samples, entries_sentence, say_added, show_details
from gatewayfilter.errors import SourceError
from gatewayfilter.model import ListAction, Source
from gatewayfilter.sources import ListFormat, ParseReport, UpdateResult, UpdateStatus
from gatewayfilter.sources.preview import Preview, Visited
from gatewayfilter.sources.publish import PublishReport, SourceReport
from gatewayfilter.sources.subscription import Definition, SourceState, Subscription
from gatewayfilter.use_cases.lists.source_changes import PreviewedSource, SourceOptions
from tests.cli.test_command_doubles import MOMENT, SETTINGS, Doubled, called, table, texts

CHANGES = "gatewayfilter.use_cases.lists.source_changes"
REPORT = ParseReport(ListFormat.HOSTS, accepted=2_000)
GOOD = UpdateResult("ads", UpdateStatus.UPDATED, REPORT)
LATE = UpdateResult("slow", UpdateStatus.PENDING, None, "no answer")
PUBLISHED = PublishReport(
    Path("/s"),
    1_234_567,
    5,
    1_000,
    3,
    (SourceReport(Source("ads"), REPORT), SourceReport(Source("gone"), None, "not there")),
    0.25,
)
SENTENCE = "Published 2,000 entries of 1 source, 1,000 of your own and 3 learned: 1.2 MB in 0.2 s.\n"
DEFINITION = Definition("ads", "https://a.example/l", ListFormat.HOSTS, "ads", ListAction.BLOCK, 0.0)
HERE = Path(__file__)


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """The publications: whether each was quiet."""
    asked: list[bool] = []

    def publish(settings: object, *, quiet: bool) -> PublishReport:
        assert settings == SETTINGS
        asked.append(quiet)
        return PUBLISHED

    monkeypatch.setattr("gatewayfilter.cli.sources.source_commands.publish_lists", publish)
    return asked


@pytest.fixture
def sources(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Subscriptions in which every list is added with the result of its name; and what was asked of them."""
    holder: dict[str, Any] = {"results": {"ads": GOOD, "slow": LATE}, "missing": (), "asked": []}

    def missing(purpose: str | None, *, defaults: bool) -> tuple[str, ...]:
        holder["asked"].append((purpose, defaults))
        found: tuple[str, ...] = holder["missing"]
        return found

    def add(known: object, address: str, options: SourceOptions, *, progress: Any) -> UpdateResult:
        assert known is double
        holder["asked"].append((address, options, progress is not None))
        if address not in holder["results"]:
            raise SourceError(f"{address} is no list")
        found: UpdateResult = holder["results"][address]
        return found

    double = SimpleNamespace(missing=missing)
    monkeypatch.setattr(f"{CHANGES}.changeable_sources", lambda _settings: double)
    monkeypatch.setattr(f"{CHANGES}.add_source", add)
    monkeypatch.setattr(f"{CHANGES}.check_source_category", lambda _settings, name: holder["asked"].append(name))
    return holder


def test_one_list_is_added_and_published(sources: dict[str, Any], published: list[bool]) -> None:
    context = Doubled()
    assert texts(context, "source", "add", "ads") == (0, f"ads: 2,000 entries (hosts)\n{SENTENCE}", "fetching ads\n")
    assert sources["asked"] == ["", (None, False), ("ads", SourceOptions(), True)]
    assert (published, context.recorded[0].undo) == ([False], {"kind": "sources", "items": [[None, {"name": "ads"}]]})
    options = ("--name", "n", "--format", "csv", "--category", "c", "--action", "splice", "--interval", "2", "--for", "home")
    sources["asked"].clear()
    assert texts(Doubled(), "source", "add", "ads", *options, "--no-publish")[:2] == (0, "ads: 2,000 entries (hosts)\n")
    wanted = SourceOptions("n", ListFormat.CSV, "c", ListAction.SPLICE, 2.0)
    assert sources["asked"] == ["c", ("home", False), ("ads", wanted, True)]
    assert published == [False]
    sources["asked"].clear()
    answer = called(Doubled(), "source", "add", "ads", "--category", "c", "--new-category", "--defaults", "--json")
    assert (answer.json["results"][0]["name"], answer.json["published"]["learned"], published[1:]) == ("ads", 3, [True])
    assert sources["asked"][0] == (None, True), "the category is not checked"


def test_several_lists_are_added_and_failures_told(sources: dict[str, Any], published: list[bool]) -> None:
    sources["missing"] = ("slow",)
    code, out, err = texts(Doubled(), "source", "add", "ads", "nosuch", "--defaults")
    assert (code, out) == (1, f"ads: 2,000 entries (hosts)\n{SENTENCE}")
    assert err.splitlines()[-2:] == [
        "gatewayfilter: nosuch is no list",
        "slow: pending, the running filter fetches it later: no answer",
    ]
    assert {asked[2] for asked in sources["asked"] if len(asked) == 3} == {False}, "several share one progress"
    sources["missing"] = ()
    assert texts(Doubled(), "source", "add", "ads", "ads")[0] == 0
    pending = "fetching slow\nslow: pending, the running filter fetches it later: no answer\n"
    assert texts(Doubled(), "source", "add", "slow") == (1, "", pending)
    assert len(published) == 2, "nothing new is in it"
    assert texts(Doubled(), "source", "add", "nosuch") == (2, "", "fetching nosuch\ngatewayfilter: nosuch is no list\n")
    assert called(Doubled(), "source", "add", "ads", "nosuch", "--json").code == 1


def test_nothing_to_add(sources: dict[str, Any], published: list[bool]) -> None:
    assert texts(Doubled(), "source", "add", "--defaults")[:2] == (0, "All of them are there.\n")
    assert texts(Doubled(), "source", "add", "--for", "home")[1] == "All of them are there.\n"
    assert called(Doubled(), "source", "add", "--defaults", "--json").json == {"results": [], "published": None}
    assert called(Doubled(), "source", "add").complains().startswith("name an address or a list of the catalogue")
    assert called(Doubled(), "source", "add", "a", "b", "--name", "n").complains() == "--name can only be given with one address"
    assert (published, sources["missing"]) == ([], ())


def test_a_preview_shows_what_would_change(sources: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    del sources
    taken = replace(REPORT, accepted=6, taken=tuple(f".{letter}.example" for letter in "abcdef"))
    preview = Preview(2, (Visited("a.example", 1, "||a.example^"),), 9)
    found = {
        "one": PreviewedSource(replace(GOOD, report=taken), preview),
        "none": PreviewedSource(GOOD, Preview(3_000, (), 0)),
        "idle": PreviewedSource(GOOD, Preview(None, (), 1_000)),
        "odd": PreviewedSource(GOOD, None),
    }
    told: list[str] = []

    def preview_one(
        known: object, address: str, options: object, compare: Callable[[Any], Preview], *, progress: Any
    ) -> PreviewedSource:
        del known, options, progress
        if address not in found:
            raise SourceError("no")
        compare(SimpleNamespace(source=Source(address)))
        return found[address]

    def compared(settings: object, item: Any, store: object) -> Preview:
        del settings, store
        told.append(item.source.name)
        return preview

    monkeypatch.setattr(f"{CHANGES}.preview_source", preview_one)
    monkeypatch.setattr(f"{CHANGES}.compare_with_use", compared)
    context = Doubled()
    code, out, err = texts(context, "source", "add", "one", "none", "idle", "odd", "nosuch", "--preview")
    assert (code, out.splitlines()) == (
        1,
        [
            "ads: 6 entries (hosts)",
            "   such as a.example, b.example, c.example, d.example, e.example",
            "   4 of them new, 2 on a list in use already",
            "   would have blocked a.example: 1 request (||a.example^)",
            "ads: 2,000 entries (hosts)",
            "   0 of them new, 3,000 on a list in use already",
            "   (no requests are logged that it could be tried on)",
            "ads: 2,000 entries (hosts)",
            "   blocks none of the last 1,000 requests that were let pass",
            "ads: 2,000 entries (hosts)",
            "Nothing was kept.",
        ],
    )
    assert err.splitlines()[:2] == ["fetching one", "comparing one with what is in use"]
    assert err.splitlines()[-1] == "gatewayfilter: no"
    assert (told, context.recorded) == (["one", "none", "idle", "odd"], [])
    answer = called(Doubled(), "source", "add", "one", "odd", "--preview", "--json")
    assert (answer.code, answer.json["published"], answer.json["changes"]["ads"]["known"]) == (0, None, 2)
    assert [result["name"] for result in answer.json["results"]] == ["ads", "ads"]


def test_lists_are_removed_and_switched(monkeypatch: pytest.MonkeyPatch, published: list[bool]) -> None:
    asked: list[object] = []

    def changed(known: object, name: str, *, enabled: bool | None) -> tuple[object, object]:
        if name == "nosuch":
            raise SourceError("nosuch comes with the program")
        asked.append((known, name, enabled))
        return {"name": name}, None

    monkeypatch.setattr(f"{CHANGES}.changeable_sources", lambda _settings: "known")
    monkeypatch.setattr("gatewayfilter.use_cases.lists.source_undo.changed_source", changed)
    for command, enabled, done in (("remove", None, "removed"), ("enable", True, "enabled"), ("disable", False, "disabled")):
        context = Doubled()
        assert texts(context, "source", command, "ads") == (0, f"ads {done}.\n{SENTENCE}", "")
        assert asked.pop() == ("known", "ads", enabled)
        assert context.recorded[0].action == f"source.{done}"
        assert context.recorded[0].undo == {"kind": "sources", "items": [[{"name": "ads"}, None]]}
        assert texts(Doubled(), "source", command, "ads", "--no-publish")[1] == f"ads {done}.\n"
        answer = called(Doubled(), "source", command, "ads", "nosuch", "--json")
        assert (answer.code, answer.json["results"], answer.json["published"]["learned"]) == (
            1,
            [{"name": "ads", "status": done}],
            3,
        )
    del published[:]
    assert texts(Doubled(), "source", "remove", "nosuch", "nosuch")[:2] == (1, "")
    assert published == []
    assert called(Doubled(), "source", "remove", "nosuch").complains() == "nosuch comes with the program"


def test_an_update_tells_of_each_list(monkeypatch: pytest.MonkeyPatch, published: list[bool]) -> None:
    refused = replace(REPORT, rejected=2, refused=1, samples=((3, "/.*/", "too broad"), (9, "?", "no host")))
    results: list[UpdateResult] = []
    asked: list[object] = []

    def update(known: object, names: object, *, every: bool, force: bool, progress: object) -> list[UpdateResult]:
        assert progress is not None
        asked.append((known, names, every, force))
        return results

    monkeypatch.setattr(f"{CHANGES}.changeable_sources", lambda _settings: "known")
    monkeypatch.setattr(f"{CHANGES}.update_sources", update)
    assert texts(Doubled(), "source", "update") == (0, "No source is due for an update.\n", "")
    assert texts(Doubled(), "source", "update", "--all", "--force") == (0, "There are no sources to update.\n", "")
    assert texts(Doubled(), "source", "update", "ads")[0] == 0
    assert asked == [("known", (), False, False), ("known", (), True, True), ("known", ("ads",), False, False)]
    results += [UpdateResult("same", UpdateStatus.UNCHANGED, refused)]
    line = "2,000 entries (hosts), 2 bad lines, 1 of them refused as too broad or too costly\n"
    assert texts(Doubled(), "source", "update") == (0, f"same: unchanged, {line}", "")
    assert published == []
    results += [UpdateResult("new", UpdateStatus.UPDATED, refused), UpdateResult("fresh", UpdateStatus.UPDATED)]
    assert texts(Doubled(), "source", "update") == (
        0,
        f"same: unchanged, {line}new: updated, {line}fresh: updated, nothing was read yet\n{SENTENCE}",
        "  new:3: '/.*/': too broad\n",
    )
    assert texts(Doubled(), "source", "update", "--no-publish")[1].endswith("read yet\n")
    results += [UpdateResult("broken", UpdateStatus.FAILED, None, "refused")]
    code, out, err = texts(Doubled(), "source", "update")
    assert (code, "broken" in out, err.splitlines()[-1]) == (1, False, "broken: refused")
    answer = called(Doubled(), "source", "update", "--json")
    assert (answer.code, len(answer.json["results"]), published) == (1, 4, [False, False, True])


STATE = SourceState(checked_at=MOMENT, changed_at=MOMENT)


def test_the_status_of_all_or_of_those_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Subscription] = []
    known = SimpleNamespace(all=lambda: found, get=lambda name: next(one for one in found if one.definition.name == name))
    monkeypatch.setattr("gatewayfilter.wiring.subscriptions", lambda _settings: known)
    assert texts(Doubled(), "source", "status") == (0, "There are no sources. Add one: gatewayfilter source catalog\n", "")
    found += [
        Subscription(DEFINITION, HERE, STATE, REPORT, MOMENT + 3_600),
        Subscription(
            replace(DEFINITION, name="own", bundled=True, enabled=False), HERE, replace(STATE, error="lost"), None, MOMENT
        ),
        Subscription(replace(DEFINITION, name="new", list_format=None), Path("/dev/null/none")),
    ]
    assert table(texts(Doubled(), "source", "status")[1]) == [
        ["name", "on", "means", "category", "format", "entries", "changed", "next", "problem"],
        ["ads", "yes", "block", "ads", "hosts", "2,000", "2023-11-14 22:13", "2023-11-14 23:13"],
        ["own", "no", "block", "ads", "hosts", "bundled", "lost"],
        ["new", "yes", "block", "ads", "pending: not fetched yet"],
    ]
    assert [item["definition"]["name"] for item in called(Doubled(), "source", "status", "own", "--json").json] == ["own"]
    _, out, _ = texts(Doubled(), "source", "status", "ads", "own")
    assert [row for row in table(out) if row[0] == "name"] == [["name", "ads"], ["name", "own"]]


def test_details_name_what_went_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    bad = replace(REPORT, rejected=11, samples=tuple((line, "x", "no host") for line in range(1, 12)))
    show_details(Subscription(DEFINITION, HERE, replace(STATE, error="refused", failures=1), bad, MOMENT + 3_600))
    out, err = capsys.readouterr()
    assert table(out) == [
        ["what", "value"],
        ["name", "ads"],
        ["address", "https://a.example/l"],
        ["counts", "yes"],
        ["means", "block, category ads"],
        ["holds", "2,000 entries (hosts), 11 bad lines"],
        ["asked", "2023-11-14 22:13"],
        ["changed", "2023-11-14 22:13"],
        ["next", "2023-11-14 23:13"],
        ["problem", "refused (1 failure since it last went well); the last good copy is in use"],
    ]
    assert (out[-2:], len(err.splitlines())) == ("\n\n", 10)
    show_details(Subscription(replace(DEFINITION, bundled=True, enabled=False), HERE, SourceState(), None, MOMENT))
    assert table(capsys.readouterr().out)[2:] == [
        ["address", "comes with the program"],
        ["counts", "no"],
        ["means", "block, category ads"],
        ["holds", "nothing was read yet"],
        ["asked"],
        ["changed"],
        ["next"],
        ["problem"],
    ]
    show_details(Subscription(DEFINITION, Path("/dev/null/none"), replace(STATE, error="refused", failures=2)))
    assert table(capsys.readouterr().out)[-1] == ["problem", "pending: refused"]


def test_what_became_of_the_lines_of_a_list() -> None:
    assert entries_sentence(replace(REPORT, accepted=1)) == "1 entry (hosts)"
    full = replace(
        REPORT,
        duplicates=1_000,
        cosmetic=2_000,
        unsupported={"a": 1, "b": 7, "c": 3, "d": 4, "e": 5, "f": 6},
        rejected=1,
        refused=1_000,
    )
    assert entries_sentence(full) == (
        "2,000 entries (hosts), 1,000 repeated, 2,000 cosmetic, 26 not supported (b, f, e, d, c), "
        "1 bad line, 1,000 of them refused as too broad or too costly"
    )


def test_bad_lines_are_named_as_many_as_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    samples = tuple((line, "x" * 101, "no host") for line in range(1, 6))
    report = replace(REPORT, rejected=5, samples=samples)
    for most, refused, named in ((0, 0, 0), (3, 0, 3), (3, 4, 4), (9, 0, 5)):
        complain_of_samples("ads", replace(report, refused=refused), most=most)
        lines = capsys.readouterr().err.splitlines()
        assert lines == [f"  ads:{line}: '{'x' * 100}': no host" for line in range(1, named + 1)]
    complain_of_samples("ads", replace(report, rejected=0), most=9)
    complain_of_samples("ads", None, most=9)
    assert capsys.readouterr() == ("", "")
    say_added(replace(GOOD, report=report))
    out, err = capsys.readouterr()
    assert (out, len(err.splitlines())) == ("ads: 2,000 entries (hosts), 5 bad lines\n", 3)


def test_the_catalogue_is_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    entry = {"category": "ads", "licence": "MIT", "description": "Ads"}
    rows = [SimpleNamespace(entry=SimpleNamespace(name="a", default=True, **entry), added=True),
            SimpleNamespace(entry=SimpleNamespace(name="b", default=False, **entry), added=False)]  # fmt: skip

    def catalogue(settings: object, category: str) -> list[Any]:
        asked.append((settings, category))
        return rows

    monkeypatch.setattr(f"{CHANGES}.list_catalogue", catalogue)
    assert table(texts(Doubled(), "source", "catalog")[1]) == [
        ["name", "default", "added", "category", "licence", "description"],
        ["a", "on", "yes", "ads", "MIT", "Ads"],
        ["b", "off", "ads", "MIT", "Ads"],
    ]
    assert len(called(Doubled(), "source", "catalog", "--category", "ads", "--json").json) == 2
    assert asked == [(SETTINGS, ""), (SETTINGS, "ads")]
    rows.clear()
    assert (
        called(Doubled(), "source", "catalog", "--category", "x").complains() == "no list of the catalogue is of the category 'x'"
    )


def test_a_publication_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    report = [PUBLISHED]

    def publish(settings: object, store: object, progress: object, *, full: bool) -> PublishReport:
        assert (settings, progress is not None) == (SETTINGS, True)
        calls.append((store, full))
        return report[0]

    store = SimpleNamespace(close=lambda: calls.append("closed"))
    monkeypatch.setattr("gatewayfilter.cli.ui.command_context.open_store", lambda _settings: store)
    monkeypatch.setattr("gatewayfilter.processes.low_priority.low_priority", nullcontext)
    monkeypatch.setattr("gatewayfilter.wiring.publish_now", publish)
    assert texts(Doubled(), "publish") == (0, SENTENCE, "gatewayfilter: gone was left out: not there\n")
    report[0] = replace(PUBLISHED, rebuilt="a list changed", sources=())
    rebuilt = "Published 0 entries of 0 sources, 1,000 of your own and 3 learned: 1.2 MB in 0.2 s, rebuilt (a list changed).\n"
    assert texts(Doubled(), "publish", "--full") == (0, rebuilt, "")
    assert called(Doubled(), "publish", "--json").json["manual_rules"] == 1_000
    assert calls == [(store, False), "closed", (store, True), "closed", (store, False), "closed"]

import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.engine.snapshot.folder import SnapshotFolder
from gatewayfilter.engine.snapshot.reader import SnapshotBuilder
from gatewayfilter.model import Classification, Evidence, LearnedEntry, ListAction, Source
from gatewayfilter.proxy.listener.pinned_apps import PinnedApp, PinnedAppsFile
from gatewayfilter.store import Store

type Cli = Callable[..., Any]

NOW = time.time()
LEARNED = LearnedEntry(
    "learned.example/x",
    ListAction.BLOCK,
    "gambling",
    "http://learned.example/x",
    "score 42.0 (limit 20.0): casino",
    NOW,
    NOW + 86_400,
)
JUDGED = Classification(
    "gambling",
    42.0,
    20.0,
    {"gambling": 42.0, "ads": 3.0},
    (Evidence("casino", "gambling", 9.0, "title", 4),) * 15,
    "Win\x1b[2J",
    "utf-8",
)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state folder with a snapshot with one list of each kind, and a page that was judged."""
    state = tmp_path_factory.mktemp("published")
    builder = SnapshotBuilder()
    builder.add_keys(builder.add_source(Source("bad-sites", ListAction.BLOCK, "malware")), [".bad.example"])
    builder.add_keys(builder.add_source(Source("good-sites", ListAction.ALLOW)), [".good.example"])
    builder.add_adblock_list(
        builder.add_source(Source("ad-rules", ListAction.BLOCK, "ads")), ["||ads.example^$third-party,script"]
    )
    builder.add_learned([LEARNED])
    SnapshotFolder(state / "snapshots").publish(builder.build())
    store = Store.open(f"sqlite:///{state / 'gatewayfilter.sqlite3'}")
    store.lists.put_learned([LEARNED])
    store.verdicts.record(LEARNED.url, JUDGED, NOW)
    store.close()
    return state


@pytest.fixture(autouse=True)
def _state(state: Path, published: Path) -> None:
    shutil.copytree(published, state)


@pytest.mark.parametrize(
    ("arguments", "code", "action", "reason", "source_list"),
    [
        (["http://www.bad.example/x"], 1, "block", "blacklist", "bad-sites"),
        (["bad.example"], 1, "block", "blacklist", "bad-sites"),
        (["https://good.example/"], 0, "allow", "whitelist", "good-sites"),
        (["https://nobody.example/"], 0, "allow", "unknown", ""),
        (["http://learned.example/x"], 1, "block", "learned", "learned:gambling"),
        (["http://learned.example/y"], 0, "allow", "unknown", ""),
        (
            ["https://ads.example/a.js", "--source", "https://news.example/", "--type", "script"],
            1,
            "block",
            "adblock",
            "ad-rules",
        ),
        (["https://ads.example/a.js", "--source", "https://ads.example/", "--type", "script"], 0, "allow", "unknown", ""),
        (["https://ads.example/a.js", "--source", "news.example", "--type", "js"], 1, "block", "adblock", "ad-rules"),
        (["https://ads.example/a.js", "--source", "https://news.example/"], 0, "allow", "unknown", ""),
    ],
)
def test_the_verdict_is_the_exit_code(
    arguments: list[str], code: int, action: str, reason: str, source_list: str, cli: Cli
) -> None:
    answer = cli("check", *arguments, "--json")
    verdict = answer.json["verdict"]
    assert (answer.code, verdict["action"], verdict["reason"], verdict["source_list"]) == (code, action, reason, source_list)
    assert cli("check", *arguments).code == code


def test_every_decider_answers_in_order(cli: Cli) -> None:
    answers = cli("check", "bad.example", "--json").json["answers"]
    names = [answer["decider"] for answer in answers]
    assert names == sorted(names, key=["manual", "bloom", "blacklist", "adblock", "spellings", "whitelist", "unknown"].index)
    assert {"manual", "bloom", "blacklist", "adblock", "whitelist"} <= set(names)
    out = cli("check", "bad.example").out
    assert all(name in out for name in names)
    assert "BLOCK (blacklist), by bad-sites, rule .bad.example, category malware" in out


def test_the_request_is_said_back(cli: Cli) -> None:
    answer = cli("check", "HTTP://Bad.example/%41", "--client", "192.0.2.7", "--method", "post", "--type", "xhr", "--json").json
    assert {name: answer[name] for name in ("url", "source", "type", "method", "client")} == {
        "url": "http://bad.example/%41",
        "source": None,
        "type": "xmlhttprequest",
        "method": "POST",
        "client": "192.0.2.7",
    }
    assert "reads /A" in cli("check", "http://bad.example/%41").out


def test_what_the_classifier_said_is_shown_with_its_evidence(cli: Cli) -> None:
    judged = cli("check", LEARNED.url, "--json").json["classification"]
    assert judged["judged_at"] == pytest.approx(NOW)
    assert judged["classification"]["evidence"][0]["word"] == "casino"
    out = cli("check", LEARNED.url).out
    assert "GAMBLING: score 42.0 (limit 20.0): casino" in out
    assert "other scores: ads 3.0" in out
    assert "and 3 more hits" in out
    assert "\x1b" not in out
    assert cli("check", "http://learned.example/y", "--json").json["classification"] is None


def test_what_has_expired_by_then_does_not_count(cli: Cli) -> None:
    assert cli("check", LEARNED.url, "--at", "2d").code == 0
    cli("list", "add", "soon.example", "--expires", "1h")
    assert cli("check", "soon.example").code == 1
    assert cli("check", "soon.example", "--at", "2h").code == 0


def test_a_persons_entry_counts_at_once_and_can_be_taken_back(cli: Cli) -> None:
    assert cli("check", LEARNED.url).code == 1
    cli("list", "add", "--allow", LEARNED.url)
    answer = cli("check", LEARNED.url, "--json")
    assert (answer.code, answer.json["verdict"]["reason"]) == (0, "manual-allow")
    cli("list", "remove", LEARNED.url)
    assert cli("check", LEARNED.url).code == 1
    cli("list", "add", "good.example")
    assert cli("check", "http://www.good.example/").code == 1
    cli("list", "add", "--allow", "http://www.good.example/")
    assert cli("check", "http://www.good.example/").code == 0


def test_a_category_can_be_switched_off(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAYFILTER_FILTER__OFF_CATEGORIES", "malware")
    assert cli("check", "bad.example").code == 0


@pytest.mark.parametrize(
    ("text", "code", "where"),
    [
        ("www.bad.example", 0, "bad-sites"),
        ("good.example", 0, "good-sites"),
        ("learned.example", 0, "learned.example/x"),
        ("http://learned.example/x", 0, "learned: gambling"),
        ("mine", 0, "every URL that fits *mine*"),
        ("by Kim", 0, "by Kim"),
        ("nobody.example", 1, "nobody.example is on no list."),
        ("not a host", 1, "is on no list."),
    ],
)
def test_search_says_who_lists_it(text: str, code: int, where: str, cli: Cli) -> None:
    cli("list", "add", "*mine*", "--comment", "by Kim")
    answer = cli("list", "search", text)
    assert (answer.code, where in answer.out) == (code, True), answer.out
    assert cli("list", "search", text, "--json").code == code


def test_stats_count_what_stands_where(cli: Cli) -> None:
    cli("list", "add", "a.example", "b.example")
    found = cli("list", "stats", "--json").json
    assert found["own"] == [{"action": "block", "kind": "domain", "entries": 2}]
    assert found["learned"] == [{"action": "block", "category": "gambling", "entries": 1}]
    assert (found["snapshot"]["blacklist"], found["snapshot"]["whitelist"], found["snapshot"]["adblock_rules"]) == (2, 1, 1)
    out = cli("list", "stats").out
    assert "Adblock rules" in out
    assert "Snapshot of" in out


def test_match_decides_as_check_does(cli: Cli, tmp_path: Path) -> None:
    requests = tmp_path / "requests.jsonl"
    requests.write_text('{"url": "http://bad.example/", "id": 1}\n{"url": "http://nobody.example/"}\nnonsense\n')
    answer = cli("match", "--stats", "--requests", requests)
    assert answer.code == 0
    blocked, allowed, bad = answer.lines
    assert blocked == {
        "url": "http://bad.example/",
        "id": 1,
        "action": "block",
        "reason": "blacklist",
        "rule": ".bad.example",
        "source_list": "bad-sites",
        "category": "malware",
    }
    assert (allowed["action"], allowed["reason"]) == ("allow", "unknown")
    assert bad == {"input": "nonsense", "error": "not JSON"}
    assert "block blacklist" in answer.err
    assert "requests/CPU-s" in answer.err
    assert "1 line held no request" in answer.err


APP = PinnedApp("192.0.2.5", "app.example", NOW - 60, NOW + 86_400, 3)


def keep(state: Path, *entries: PinnedApp) -> None:
    for entry in entries:
        PinnedAppsFile(state / "pinned-apps.json").add(entry)


def test_it_says_what_holds_for_a_device_whose_app_passes_unread(cli: Cli, state: Path) -> None:
    keep(state, APP, replace(APP, host="other.example"))
    answer = cli("check", "https://APP.example/x", "--client", "192.0.2.5")
    assert "Connections of 192.0.2.5 to this host pass through unread: the verdict above does not count" in answer.out
    assert "192.0.2.5 passes through unread until" in answer.out
    assert "because it broke off 3 connections" in answer.out
    assert "each request decided" not in answer.out
    found = cli("check", "https://app.example/x", "--client", "192.0.2.5", "--json").json
    assert (found["host"]["action"], found["host"]["verdict"]["reason"]) == ("splice", "pinned-app")
    assert found["connection"]["unread"] is True
    assert found["connection"]["pinned_apps"] == [asdict(APP)]


def test_other_devices_and_other_times_are_decided(cli: Cli, state: Path) -> None:
    keep(state, APP)
    for arguments in (["--client", "192.0.2.6"], ["--client", "192.0.2.5", "--at", "2d"]):
        answer = cli("check", "https://app.example/x", *arguments)
        assert "each request decided" in answer.out
        assert "unread until" not in answer.out
        assert cli("check", "https://app.example/x", *arguments, "--json").json["connection"]["unread"] is False
    every = cli("check", "https://app.example/x")
    assert "each request decided" in every.out
    assert "192.0.2.5 passes through unread until" in every.out


@pytest.mark.parametrize("setting", [("TLS__PASS_THROUGH", "false"), ("PROXY__UNKNOWN", "block")])
def test_what_is_not_in_force_is_said(cli: Cli, state: Path, monkeypatch: pytest.MonkeyPatch, setting: tuple[str, str]) -> None:
    keep(state, APP)
    monkeypatch.setenv(f"GATEWAYFILTER_{setting[0]}", setting[1])
    out = cli("check", "https://app.example/x", "--client", "192.0.2.5").out
    assert "each request decided" in out
    assert "; this does not count now." in out


def test_a_host_with_a_blocked_page_passes_for_nobody(cli: Cli, state: Path) -> None:
    keep(state, replace(APP, host="learned.example"), replace(APP, host="part.example"))
    out = cli("check", "https://learned.example/y", "--client", "192.0.2.5").out
    assert "each request decided" in out
    assert "They never pass through unread: it or a page of it is blocked (learned, learned:gambling, learned.example/x)." in out
    assert "; this does not count now." in out
    assert cli("check", "https://part.example/", "--client", "192.0.2.5", "--json").json["connection"]["unread"] is True
    cli("list", "add", "https://part.example:8443/trap")
    found = cli("check", "https://part.example/", "--client", "192.0.2.5", "--json").json
    assert (found["connection"]["unread"], found["host"]["named"]) == (False, True)
    assert found["host"]["because"]["reason"] == "manual-block"


def test_refused_spliced_and_raw_connections(cli: Cli) -> None:
    assert "refused before their first request (blacklist, bad-sites, .bad.example)" in cli("check", "https://bad.example/").out
    assert cli("check", "https://bad.example/", "--json").json["connection"]["raw_tunnels"] == "refused"
    cli("list", "add", "--splice", "bank.example")
    out = cli("check", "https://bank.example/").out
    assert "pass through unread (manual-splice, .bank.example): the verdict above does not count for them." in out
    assert cli("check", "http://bank.example/", "--json").json["connection"] is None

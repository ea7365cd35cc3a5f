import gzip
import json
import multiprocessing
import os
import resource
import signal
import socket
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from gatewayfilter.config import SourceSettings
from gatewayfilter.errors import GatewayFilterError, ListError, SourceError
from gatewayfilter.model import ListAction
from gatewayfilter.sources import ListFormat, Subscriptions, UpdateStatus
from gatewayfilter.sources.formats.parse import count_list
from gatewayfilter.sources.source_lock import locked_source, sweep
from tests.sources.list_server import BUNDLED, Clock, ListServer, answer, gzip_bomb, ut1_archive

LIST = "".join(f"host{number}.example.com\n" for number in range(100)).encode()


def copy_of(subscriptions: Subscriptions, name: str) -> bytes:
    return subscriptions.get(name).list_path.read_bytes()


def own_names(subscriptions: Subscriptions) -> list[str]:
    return [name for name in subscriptions.names() if not name.startswith("starter-")]


def test_a_list_is_added_and_asked_for_news_only(server: ListServer, subscriptions: Subscriptions, clock: Clock) -> None:
    def serve(handler: BaseHTTPRequestHandler) -> None:
        if handler.headers["If-None-Match"] == '"one"':
            answer(handler, b"", status=304)
        else:
            answer(handler, LIST, headers={"ETag": '"one"', "Last-Modified": "Fri, 20 Nov 2026 00:00:00 GMT"})

    server.answers["/gambling/domains"] = serve
    added = subscriptions.add(f"{server.base}/gambling/domains")
    assert (added.name, added.status) == ("gambling", UpdateStatus.UPDATED)
    known = subscriptions.get("gambling")
    assert (known.definition.category, known.definition.action) == ("gambling", ListAction.BLOCK)
    assert known.definition.list_format is ListFormat.DOMAINS
    kept = sorted(path.name for path in known.list_path.parent.iterdir())
    assert kept == ["list", "report.json", "source.json", "state.json"], "what was downloaded is not kept beside what is in it"
    assert known.report == added.report
    assert known.report is not None
    assert known.report.accepted == 100
    assert (known.state.etag, known.state.changed_at) == ('"one"', clock.now)
    assert [file.source.name for file in subscriptions.files()][-1] == "gambling"

    clock.now += 5
    (result,) = subscriptions.update(["gambling"])
    assert result.status is UpdateStatus.UNCHANGED
    assert server.requests[-1][1]["if-modified-since"] == "Fri, 20 Nov 2026 00:00:00 GMT"
    state = subscriptions.get("gambling").state
    assert (state.checked_at, state.changed_at) == (clock.now, clock.now - 5)

    (result,) = subscriptions.update(["gambling"], force=True)
    assert result.status is UpdateStatus.UPDATED
    assert "if-none-match" not in server.requests[-1][1]


def test_the_same_bytes_are_no_news(server: ListServer, subscriptions: Subscriptions) -> None:
    subscriptions.add(server.serve("/a.txt", LIST))
    server.serve("/a.txt", gzip.compress(LIST), ETag='"two"')
    (result,) = subscriptions.update(["a"])
    assert result.status is UpdateStatus.UNCHANGED
    assert subscriptions.get("a").state.etag == '"two"'


@pytest.mark.parametrize("status", [500, 503, 429])
def test_a_failure_that_passes_is_tried_again(server: ListServer, subscriptions: Subscriptions, status: int) -> None:
    answers = [status, 200]

    def serve(handler: BaseHTTPRequestHandler) -> None:
        answer(handler, LIST, status=answers.pop(0))

    server.answers["/a.txt"] = serve
    assert subscriptions.add(f"{server.base}/a.txt").status is UpdateStatus.UPDATED
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/missing", "answers 404"),
        ("/broken", "answers 500"),
        ("/page", "web page"),
        ("/empty", "empty"),
        ("/cut", "cut off after 5 of 5,000 bytes"),
        ("/loop", "redirects too often"),
        ("/ftp", "not followed"),
        ("/file", "redirects too often or nowhere"),
        ("/large", "larger than 1,000,000 bytes"),
        ("/bomb", "larger than 1,000,000 bytes"),
        ("/damaged", "damaged"),
        ("/binary", "binary"),
        ("/nothing", "no usable entry"),
    ],
)
def test_a_bad_answer_is_said_and_nothing_is_kept(
    server: ListServer, subscriptions: Subscriptions, tmp_path: Path, path: str, why: str
) -> None:
    server.serve("/missing", b"", status=404)
    server.serve("/broken", b"", status=500)
    server.serve("/page", b"<!DOCTYPE html><title>Log in</title>")
    server.serve("/empty", b"")
    server.serve("/large", b"a.example.com\n" * 100_000)
    server.serve("/bomb", gzip_bomb(20), Content_Encoding="gzip")
    server.serve("/damaged", gzip.compress(LIST)[:40])
    server.serve("/binary", b"\x7fELF" + bytes(500))
    server.serve("/nothing", b"co.uk\ncom.au\n")
    server.serve("/loop", b"", status=302, Location="/loop")
    server.serve("/file", b"", status=302, Location="file:///etc/passwd")
    server.serve("/ftp", b"", status=302, Location="ftp://lists.example/x")
    server.answers["/cut"] = lambda handler: answer(handler, LIST[:5], length=5_000)
    with pytest.raises((SourceError, ListError), match=why):
        subscriptions.add(server.base + path, name="bad")
    assert own_names(subscriptions) == []
    assert [entry.name for entry in (tmp_path / "state" / "sources").iterdir()] == [".bad.lock"]


def test_a_failed_update_keeps_the_copy_and_backs_off(server: ListServer, subscriptions: Subscriptions, clock: Clock) -> None:
    subscriptions.add(server.serve("/a.txt", LIST))
    server.serve("/a.txt", b"<html>", status=200)
    waits = []
    for _ in range(4):
        (result,) = subscriptions.update(["a"])
        assert result.status is UpdateStatus.FAILED
        assert "web page" in result.error
        waits.append(subscriptions.get("a").next_due_at - clock.now)
    assert all(least <= wait <= 1.1 * least for wait, least in zip(waits, [300, 600, 1200, 2400], strict=True))
    assert copy_of(subscriptions, "a") == LIST
    assert subscriptions.get("a").state.failures == 4
    assert subscriptions.due(clock.now) == []
    server.serve("/a.txt", LIST + b"more.example.com\n")
    clock.now += 2640
    (result,) = subscriptions.update()
    assert (result.name, result.status) == ("a", UpdateStatus.UPDATED)
    assert subscriptions.get("a").state.error == ""


def test_a_list_that_shrank_is_kept_back_until_forced(server: ListServer, subscriptions: Subscriptions) -> None:
    subscriptions.add(server.serve("/a.txt", LIST))
    small = b"".join(LIST.splitlines(keepends=True)[:9])
    server.serve("/a.txt", small)
    (result,) = subscriptions.update(["a"])
    assert result.status is UpdateStatus.KEPT_BACK
    assert "shrank from 100 to 9" in result.error
    assert copy_of(subscriptions, "a") == LIST
    (result,) = subscriptions.update(["a"], force=True)
    assert result.status is UpdateStatus.UPDATED
    assert copy_of(subscriptions, "a") == small


def test_a_file_that_is_mostly_no_list_is_refused_with_its_first_lines(server: ListServer, subscriptions: Subscriptions) -> None:
    address = server.serve("/a.txt", b"".join(b"0.0.0.%d real%d.example\n" % (number, number) for number in range(1, 50)))
    with pytest.raises(ListError, match=r"no usable entry; line 1, '0.0.0.1 real1.example': sends .*; line 2, .*; line 3, "):
        subscriptions.add(address)
    body = LIST + b"".join(b"no host %d\n" % number for number in range(300))
    with pytest.raises(ListError, match="most of it cannot be read as domains: 300 bad lines, 100 good; line 101"):
        subscriptions.add(server.serve("/b.txt", body), list_format=ListFormat.DOMAINS)


def test_the_default_lists_are_few_and_of_the_catalogue(subscriptions: Subscriptions) -> None:
    defaults = [entry.name for entry in subscriptions.catalog.values() if entry.default]
    assert "easylist" in defaults
    assert len(defaults) < 10


def test_sources_are_due_by_their_interval_with_jitter(server: ListServer, subscriptions: Subscriptions, clock: Clock) -> None:
    subscriptions.add(server.serve("/a.txt", LIST), interval_h=2)
    subscriptions.add(server.serve("/b.txt", LIST), fetch=False)
    assert subscriptions.due(clock.now) == ["b"]
    assert 7200 <= subscriptions.get("a").next_due_at - clock.now <= 7920
    clock.now += 7920
    subscriptions.disable("b")
    assert subscriptions.due(clock.now) == ["a"]


def test_a_preview_keeps_nothing(server: ListServer, subscriptions: Subscriptions) -> None:
    result = subscriptions.add(server.serve("/a.txt", LIST + b"com\n"), preview=True)
    assert result.report is not None
    assert (result.report.accepted, result.report.rejected) == (100, 1)
    assert own_names(subscriptions) == []


def test_files_are_copied_and_read_again_when_they_changed(subscriptions: Subscriptions, tmp_path: Path) -> None:
    file = tmp_path / "mine.txt"
    file.write_bytes(LIST)
    subscriptions.add(str(file), category="press")
    assert subscriptions.get("mine").definition.action is ListAction.ALLOW
    assert subscriptions.update(["mine"])[0].status is UpdateStatus.UNCHANGED
    file.write_bytes(LIST + b"new.example.com\n")
    assert subscriptions.update(["mine"])[0].status is UpdateStatus.UPDATED
    file.unlink()
    assert "there is no" in subscriptions.update(["mine"])[0].error
    assert copy_of(subscriptions, "mine").endswith(b"new.example.com\n")


def test_ut1_folders_and_archives_hold_domains_and_prefixes(
    server: ListServer, subscriptions: Subscriptions, tmp_path: Path
) -> None:
    folder = tmp_path / "drogue"
    folder.mkdir()
    (folder / "domains").write_text("a.example\nb.example")
    (folder / "urls").write_text("c.example/x")
    subscriptions.add(str(folder))
    assert subscriptions.get("drogue").definition.category == "drugs"
    assert copy_of(subscriptions, "drogue") == b"a.example\nb.example\nc.example/x\n"

    games = {"domains": "g.example\n", "urls": "h.example/x\n"}
    subscriptions.add(server.serve("/games.tar.gz", ut1_archive(games=games), Content_Encoding="gzip"))
    assert copy_of(subscriptions, "games") == b"g.example\nh.example/x\n"

    several = server.serve("/blacklists.tar.gz", ut1_archive(games=games, bank={"domains": "i.example\n"}))
    with pytest.raises(ListError, match=r"several categories; name one of bank, games"):
        subscriptions.add(several)
    subscriptions.add(several, category="bank", name="several")
    assert copy_of(subscriptions, "several") == b"i.example\n"

    with pytest.raises(ListError, match="neither `domains` nor `urls`"):
        subscriptions.add(server.serve("/odd.tar.gz", ut1_archive(odd={"readme": "x"})))


def test_the_catalogue_is_known_by_name(subscriptions: Subscriptions) -> None:
    subscriptions.add("urlhaus", fetch=False)
    definition = subscriptions.get("urlhaus").definition
    assert definition.address.startswith("https://")
    assert (definition.category, definition.list_format, definition.interval_h) == ("malware", ListFormat.URLS, 1)
    assert subscriptions.files()[-1].source.name != "urlhaus"
    for entry in subscriptions.catalog.values():
        assert entry.category in subscriptions.categories
        assert entry.licence
        assert entry.description.endswith(".")
        assert entry.description_zh.endswith("。")
        assert entry.address.startswith("https://")
        assert entry.homepage.startswith("https://")


@pytest.mark.parametrize(
    ("address", "name", "why"),
    [
        ("easylst", "", "did you mean 'easylist'"),
        ("ftp://lists.example/a", "", "no http"),
        ("easylist", "UPPER", "no name for a source"),
        ("easylist", "../x", "no name for a source"),
        ("easylist", "starter-x", "belong to the lists that come with the program"),
        ("http://[broken/x", "", "no web address"),
    ],
)
def test_what_cannot_be_added_is_said(subscriptions: Subscriptions, address: str, name: str, why: str) -> None:
    with pytest.raises(SourceError, match=why):
        subscriptions.add(address, name=name)
    assert own_names(subscriptions) == []


def test_a_server_that_is_not_there_is_said(server: ListServer, subscriptions: Subscriptions) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(SourceError, match="cannot reach"):
            subscriptions.add(f"http://127.0.0.1:{unused.getsockname()[1]}/x")
    assert own_names(subscriptions) == []


def test_an_adblock_list_cannot_allow(subscriptions: Subscriptions, tmp_path: Path) -> None:
    (tmp_path / "ads.txt").write_text("||a.example^\n")
    with pytest.raises(SourceError, match="Adblock"):
        subscriptions.add(str(tmp_path / "ads.txt"), action=ListAction.ALLOW)


def test_a_name_is_taken_once_and_free_after_removal(server: ListServer, subscriptions: Subscriptions) -> None:
    address = server.serve("/a.txt", LIST)
    subscriptions.add(address)
    with pytest.raises(SourceError, match="already"):
        subscriptions.add(address)
    subscriptions.remove("a")
    assert own_names(subscriptions) == []
    with pytest.raises(SourceError, match="no source 'a'"):
        subscriptions.remove("a")
    with pytest.raises(SourceError, match="no source 'a'"):
        subscriptions.update(["a"])
    subscriptions.add(address)


def test_starter_lists_can_be_disabled_and_not_removed(subscriptions: Subscriptions, tmp_path: Path) -> None:
    starters = [name for name in subscriptions.names() if name.startswith("starter-")]
    spliced = [f"starter-splice-{name}" for name in ("bank", "health", "pinned", "updates")]
    assert starters == ["starter-ads", "starter-encrypted-dns", *spliced, "starter-test", "starter-trackers"]
    with pytest.raises(SourceError, match="disable it"):
        subscriptions.remove("starter-ads")
    subscriptions.disable("starter-ads")
    again = Subscriptions(tmp_path / "state" / "sources", SourceSettings(), BUNDLED)
    assert [file.source.name for file in again.files()] == [*spliced, "starter-test", "starter-trackers"]
    again.enable("starter-ads")
    assert [(file.source.category, file.source.action) for file in again.files()] == [
        ("ads", ListAction.BLOCK),
        *((name, ListAction.SPLICE) for name in ("bank", "health", "pinned", "updates")),
        ("other", ListAction.BLOCK),
        ("trackers", ListAction.BLOCK),
    ]
    assert again.update(["starter-ads"])[0].status is UpdateStatus.UNCHANGED
    without = Subscriptions(tmp_path / "state" / "sources", SourceSettings(bundled=False), BUNDLED)
    assert without.files() == []


def test_starter_lists_tell_their_entries(subscriptions: Subscriptions) -> None:
    told = {item.definition.name: item.report for item in subscriptions.all()}
    for file in subscriptions.files():
        report = told[file.source.name]
        with file.path.open("rb") as lines:
            counted = count_list(lines, file.list_format, file.source.action)
        assert report is not None
        assert (report.list_format, report.accepted) == (file.list_format, counted.accepted), file.source.name
        assert counted.accepted == counted.entries > 0


def test_a_damaged_definition_disturbs_no_other(server: ListServer, subscriptions: Subscriptions, tmp_path: Path) -> None:
    subscriptions.add(server.serve("/a.txt", LIST))
    subscriptions.add(server.serve("/b.txt", LIST))
    home = tmp_path / "state" / "sources"
    (home / "a" / "source.json").write_text('{"name": ')
    (home / "b" / "state.json").write_text("[]")
    (home / "b" / "report.json").write_text("{}")
    assert [item.definition.name for item in subscriptions.all()][-1] == "b"
    with pytest.raises(SourceError, match="damaged"):
        subscriptions.get("a")
    assert subscriptions.update(["b"])[0].status is UpdateStatus.UPDATED
    subscriptions.remove("a")


def _update_in_child(folder: Path, address: str, limit: int) -> None:
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    subscriptions = Subscriptions(folder, SourceSettings(), BUNDLED, sleep=lambda _: None)
    try:
        if address:
            subscriptions.add(address, name="new")
        else:
            (result,) = subscriptions.update(["a"], force=True)
            os._exit(0 if result.status is UpdateStatus.UPDATED else 3)
    except GatewayFilterError:
        os._exit(4)
    os._exit(0)


def _child(folder: Path, address: str = "", limit: int = 0) -> multiprocessing.process.BaseProcess:
    process = multiprocessing.get_context("spawn").Process(target=_update_in_child, args=(folder, address, limit))
    process.start()
    return process


@pytest.mark.slow
def test_a_full_disk_keeps_the_last_good_copy(server: ListServer, subscriptions: Subscriptions, tmp_path: Path) -> None:
    subscriptions.add(server.serve("/a.txt", LIST))
    big = server.serve("/a.txt", LIST + b"".join(b"more%d.example.com\n" % number for number in range(5_000)))
    folder = tmp_path / "state" / "sources"
    for address, code in (("", 3), (big, 4)):
        process = _child(folder, address, limit=20_000)
        process.join()
        assert process.exitcode == code
    assert copy_of(subscriptions, "a") == LIST
    assert own_names(subscriptions) == ["a"]
    assert "File too large" in subscriptions.get("a").state.error


@pytest.mark.parametrize("adding", [True, False])
def test_kill_in_the_middle_of_a_download(
    server: ListServer, subscriptions: Subscriptions, tmp_path: Path, *, adding: bool
) -> None:
    subscriptions.add(server.serve("/a.txt", LIST))
    reached = tmp_path / "reached"

    def stall(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(LIST)
        handler.wfile.flush()
        reached.touch()
        while handler.connection.fileno() >= 0 and reached.exists():
            time.sleep(0.01)

    server.answers["/a.txt"] = stall
    folder = tmp_path / "state" / "sources"
    process = _child(folder, f"{server.base}/a.txt" if adding else "")
    while not reached.exists():
        assert process.is_alive(), f"the child ended with {process.exitcode} before it asked"
        time.sleep(0.01)
    assert process.pid
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    reached.unlink()
    assert own_names(subscriptions) == ["a"]
    assert copy_of(subscriptions, "a") == LIST
    address = server.serve("/a.txt", LIST + b"more.example.com\n")
    assert subscriptions.update(["a"])[0].status is UpdateStatus.UPDATED
    subscriptions.add(address, name="new")
    assert sorted(path.name for path in folder.iterdir()) == [".a.lock", ".new.lock", "a", "new"]


@pytest.mark.slow
def test_two_processes_may_update_at_once(server: ListServer, subscriptions: Subscriptions, tmp_path: Path) -> None:
    subscriptions.add(server.serve("/a.txt", LIST))
    server.serve("/a.txt", LIST + b"more.example.com\n")
    children = [_child(tmp_path / "state" / "sources") for _ in range(2)]
    for child in children:
        child.join()
    assert [child.exitcode for child in children] == [0, 0]
    assert copy_of(subscriptions, "a").endswith(b"more.example.com\n")
    assert json.loads((tmp_path / "state" / "sources" / "a" / "report.json").read_text())["accepted"] == 101


def test_who_sweeps_leaves_those_alone_who_are_at_work(tmp_path: Path) -> None:
    with locked_source(tmp_path, "busy") as work:
        (work / "body").write_bytes(b"half a list")
        (tmp_path / ".dead.part").mkdir()
        sweep(tmp_path)
        assert (work / "body").exists()
        assert not (tmp_path / ".dead.part").exists()

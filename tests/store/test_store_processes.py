"""Several processes on one file: nobody leases twice, no reader sees a gap, and kill -9 leaves nothing half-written."""

import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from gatewayfilter.interfaces import CrawlRequest
from gatewayfilter.model import ChangeKind, ManualRule
from gatewayfilter.store import Store

PROLOGUE = """
import sys, time
from gatewayfilter.interfaces import CrawlRequest
from gatewayfilter.model import *
from gatewayfilter.store import Store
store = Store.open(sys.argv[1])
name = sys.argv[2]
print("ready", flush=True)
sys.stdin.readline()
"""

LEASE_ALL = """
while leases := store.frontier.lease(7, 60.0, 200.0):
    for lease in leases:
        assert store.frontier.done(lease, rest_until=1000.0)
        print(lease.url)
"""

ADD_AND_REMOVE = """
for number in range(100):
    rule = store.lists.add_rule(ListAction.BLOCK, EntryKind.HOST, f"{name}-{number}.example")
    if number % 2:
        store.lists.remove_rule(rule.rule_id)
"""

WRITE_FOR_EVER = """
number = 0
while True:
    number += 1
    hosts = [f"{name}-{number}-{part}.example" for part in range(20)]
    store.lists.add_rules([ManualRule(0, ListAction.BLOCK, EntryKind.HOST, host) for host in hosts])
    store.frontier.add([CrawlRequest(f"http://{name}.example/{number}/{part}") for part in range(20)], 100.0)
    store.log.write([LogRecord(1.0, "", "GET", f"{number}", "document", "allow", "unknown")] * 20)
"""

type Start = Callable[[str, str], subprocess.Popen[str]]


@pytest.fixture
def start(store_url: str) -> Start:
    """Starts a process that opened the store and waits for a line on its standard input."""

    def start_one(code: str, name: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", PROLOGUE + code, store_url, name]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    return start_one


def let_go(processes: list[subprocess.Popen[str]]) -> None:
    for process in processes:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()


def test_every_url_goes_to_one_process_only(store: Store, start: Start) -> None:
    offered = [f"http://a.example/{number}" for number in range(300)]
    store.frontier.add([CrawlRequest(url) for url in offered], 100.0)
    processes = [start(LEASE_ALL, name) for name in "ab"]
    let_go(processes)
    taken = [process.communicate(timeout=60)[0].split() for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert sorted(taken[0] + taken[1]) == sorted(offered)
    assert store.frontier.stats(200.0)["done"] == 300


def test_a_reader_never_sees_a_step_before_an_earlier_one(store: Store, start: Start) -> None:
    writers = [start(ADD_AND_REMOVE, name) for name in "ab"]
    let_go(writers)
    seen: list[int] = []
    while any(writer.poll() is None for writer in writers) or store.feed.last_seq() > (seen[-1] if seen else 0):
        seen += [change.seq for change in store.feed.read(seen[-1] if seen else 0)]
    for writer in writers:
        writer.communicate(timeout=60)
        assert writer.returncode == 0
    assert len(seen) == 300
    assert seen == [change.seq for change in store.feed.read(0)]
    assert len(store.lists.rules()) == 100


def test_kill_9_leaves_nothing_half_written(sqlite_url: str, tmp_path: Path) -> None:
    with closing(Store.open(sqlite_url)) as store:
        for round_ in range(2):
            command = [sys.executable, "-c", PROLOGUE + WRITE_FOR_EVER, sqlite_url, f"w{round_}"]
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
                let_go([writer])
                before = store.feed.last_seq()
                while store.feed.last_seq() < before + 100:
                    time.sleep(0.005)
                writer.kill()
            rules = store.lists.rules()
            changes = store.feed.read(0, limit=10**6)
            assert len(rules) % 20 == 0
            assert [change.manual for change in changes] == rules
            assert all(change.kind is ChangeKind.MANUAL_ADDED and isinstance(change.manual, ManualRule) for change in changes)
            assert store.frontier.stats(100.0)["waiting"] % 20 == 0
            assert len(store.log.tail(10**6)) % 20 == 0
            assert store.frontier.add([CrawlRequest(f"http://after.example/{round_}/{part}") for part in range(20)], 100.0) == 20
    with closing(sqlite3.connect(tmp_path / "gatewayfilter.sqlite3")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]

"""What policies cost a decision: 200 clients, 20 groups, 50 schedules against none, over the same lists and requests.

CPU time of one thread, best and median of interleaved rounds, warm. "one check" has no policy: it is the cost of asking
whether there is any. What a policy allows or switches off is decided further: by Adblock rules, the allowlist, as unknown.
That costs as much where the settings switch it off, so the last columns compare with that. "neighbours" adds 100,000 devices
on the links, and 5,000 clients recognized by their MAC. "services" gives each policy 30 services of the catalogue that it
blocks, and 10 of them a quota; the hosts of the requests are looked up in it.

    python scripts/bench/bench_policy.py [--entries 1000000] [--requests 15000] [--rounds 9]
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from bench_decision import as_request, build, synthetic_lines, test_data

from gatewayfilter.config import bundled_folder
from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot.folder import SnapshotFolder
from gatewayfilter.engine.snapshot.reader import Snapshot
from gatewayfilter.model import (
    DEFAULT,
    CategoryAction,
    Change,
    ChangeKind,
    Client,
    Group,
    Policy,
    PolicyItem,
    Quota,
    QuotaKind,
    Request,
    Schedule,
    ScheduleEffect,
    UnknownAction,
    Window,
    parse_matcher,
)
from gatewayfilter.sources import load_services

BUDGET_US = 2.0
REQUESTS = {"safesearch": "on", "youtube": "strict", "search-terms": "casino,make a bomb", "file-types": "programs"}
ZONES = ("Europe/Berlin", "America/New_York", "Asia/Shanghai", "Australia/Lord_Howe")
SWITCHED = ("a category allowed, for everybody", "categories switched and everything blocked by schedules")
"""What lets decisions go on that the lists would end."""
EFFECTS = (ScheduleEffect.BLOCK_ALL, ScheduleEffect.BLOCK_CATEGORY, ScheduleEffect.ALLOW_CATEGORY)


def items(clients: int, groups: int, schedules: int, *, listed: bool, acting: bool = False) -> list[PolicyItem]:
    """Returns clients in groups with policies; `listed` switches categories, `acting` sets values that act on requests."""
    found: list[PolicyItem] = [Policy(DEFAULT, requests=REQUESTS)] if acting else []
    for number in range(groups):
        categories = {"gambling": CategoryAction.ALLOW if number % 2 else CategoryAction.BLOCK} if listed else {}
        found += [
            Policy(f"policy {number}", {}, categories, UnknownAction.HOLD if number % 3 else None),
            Group(f"group {number}", f"policy {number}"),
        ]
    for number in range(schedules):
        effect = EFFECTS[number % len(EFFECTS)] if listed else ScheduleEffect.BLOCK_CATEGORY
        target = "" if effect is ScheduleEffect.BLOCK_ALL else "gambling"
        window = Window(number % 24 * 60, (number + 1) % 24 * 60)
        name = f"policy {number % groups}"
        found.append(Schedule(f"schedule {number}", name, effect, (window,), ZONES[number % len(ZONES)], target))
    for number in range(clients):
        matchers = (parse_matcher(address(number)), parse_matcher(f"10.200.{number % 256}.0/{24 if number < 256 else 25}"))
        found.append(Client(f"client {number}", matchers[: 2 if number < 256 else 1], f"group {number % groups}"))
    return found


def with_services(found: Sequence[PolicyItem], catalogue: Sequence[str], quotas: int) -> list[PolicyItem]:
    """Returns the items with 30 services blocked by each policy, and quotas for others."""
    changed: list[PolicyItem] = []
    number = 0
    for item in found:
        if isinstance(item, Policy):
            names = [catalogue[(7 * number + place) % len(catalogue)] for place in range(30)]
            changed.append(replace(item, services=dict.fromkeys(names, True)))
            if number < quotas:
                target = "games" if number % 2 else catalogue[(7 * number + 31) % len(catalogue)]
                kind = QuotaKind.CATEGORY if number % 2 else QuotaKind.SERVICE
                changed.append(Quota(f"quota {number}", item.name, kind, target, 60, ZONES[number % len(ZONES)]))
            number += 1
        else:
            changed.append(item)
    return changed


def address(number: int) -> str:
    """Returns the address of a client."""
    return f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"


def by_mac(count: int) -> list[PolicyItem]:
    """Returns clients that are recognized by their MAC."""
    return [Client(f"device {number}", (parse_matcher(mac(number)),), f"group {number % 20}") for number in range(count)]


def mac(number: int) -> str:
    """Returns the MAC of a device."""
    return ":".join(f"{byte:02x}" for byte in number.to_bytes(6))


def cpu_us(work: Callable[[], object], count: int) -> float:
    """Returns CPU microseconds for each of `count` items of the work."""
    start = time.process_time()
    work()
    return (time.process_time() - start) / count * 1e6


def engine_of(path: Path, found: Sequence[PolicyItem], neighbours: int = 0, off: Sequence[str] = ()) -> FilterEngine:
    """Returns an engine with policies, and with categories that are off for everybody."""
    engine = FilterEngine(Snapshot.open(path), off_categories=off, services=load_services(bundled_folder() / "services.toml"))
    if neighbours:
        engine.set_neighbours(
            {f"10.{100 + (number >> 16)}.{number >> 8 & 255}.{number & 255}": mac(number) for number in range(neighbours)}
        )
    engine.apply([Change(number, ChangeKind.POLICY_PUT, policy=item) for number, item in enumerate(found, 1)])
    return engine


def paired(values: Sequence[float], other: Sequence[float]) -> float:
    """Returns the median of the differences of the same rounds: what disturbs the machine disturbs both."""
    return statistics.median(one - another for one, another in zip(values, other, strict=True))


def main(argv: Sequence[str] | None = None) -> int:
    """Prints a Markdown table. Returns 0; the budget is reported, not enforced, on an unknown machine."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--requests", type=int, default=15_000)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args(argv)
    data = test_data()
    if data is None:
        print("The test data folder is not there: made-up requests, no Adblock rules.\n")
        lines, lists = synthetic_lines(options.requests), []
    else:
        with (data / "requests" / "requests.jsonl").open(encoding="utf-8") as file:
            lines = [json.loads(line) for line, _ in zip(file, range(options.requests), strict=False)]
        lists = [data / "lists" / "easylist.txt", data / "lists" / "easyprivacy.txt"]
    requests = [request for request in map(as_request, lines) if request is not None]
    requests = [replace(request, client=address(number % 200)) for number, request in enumerate(requests)]
    with TemporaryDirectory() as folder:
        report(SnapshotFolder(Path(folder)).publish(build(requests, options.entries, lists)), requests, options.rounds)
    return 0


def report(path: Path, requests: Sequence[Request], rounds: int) -> None:
    """Measures and prints."""
    usual = items(200, 20, 50, listed=False)
    many = [*items(200, 20, 50, listed=False), *by_mac(5000)]
    names = sorted(load_services(bundled_folder() / "services.toml"))
    engines = {
        "none: one check": engine_of(path, ()),
        "200 clients, 20 groups, 50 schedules": engine_of(path, usual),
        "the same, with 5,000 clients and 100,000 neighbours": engine_of(path, many, 100_000),
        "the first, with SafeSearch, search terms and file types": engine_of(path, items(200, 20, 50, listed=False, acting=True)),
        "the same 200, 30 services for each policy, 10 quotas": engine_of(path, with_services(usual, names, 10)),
        "none, but the category switched off by the settings": engine_of(path, (), off=["gambling"]),
        "a category allowed, for everybody": engine_of(path, [Policy("default", {}, {"gambling": CategoryAction.ALLOW})]),
        "a list of rules off, for everybody": engine_of(path, [Policy("default", {"easyprivacy": False})]),
        "categories switched and everything blocked by schedules": engine_of(path, items(200, 20, 50, listed=True)),
    }
    figures: dict[str, list[float]] = {name: [] for name in engines}

    def warm(engine: FilterEngine) -> None:
        for request in requests:
            engine.decide(request)

    for number in range(rounds + 1):
        for name, engine in list(engines.items())[:: -1 if number % 2 else 1]:
            spent = cpu_us(lambda engine=engine: warm(engine), len(requests))  # type: ignore[misc]
            if number:
                figures[name].append(spent)
    none, off = figures["none: one check"], figures["none, but the category switched off by the settings"]
    print(f"{len(requests):,} requests of 200 clients, {rounds} rounds.\n")
    print("| policies | a decision, best | median | more than none, best | median | more than off by settings, best | median |")
    print("|---|---|---|---|---|---|---|")
    for name, values in figures.items():
        compared = [none, off] if name in SWITCHED else [none]
        cells = [f"{min(values):.2f} µs | {statistics.median(values):.2f} µs"]
        cells += [f"{min(values) - min(other):+.2f} µs | {paired(values, other):+.2f} µs" for other in compared]
        print(f"| {name} | {' | '.join(cells)} |{' | |' * (2 - len(compared))}")
    for name, found, neighbours in (("200 clients", usual, 0), ("5,000 clients and 100,000 neighbours", many, 100_000)):
        engine = engine_of(path, found, neighbours)
        change = Change(10**6, ChangeKind.POLICY_PUT, policy=Client("another", (parse_matcher("192.0.2.1"),)))
        spent = cpu_us(lambda engine=engine, change=change: engine.apply([change]), 1)  # type: ignore[misc]
        print(f"| a change, {name} | {spent / 1000:.0f} ms | | | | | |")
    print(f"\nBudget for policies: {BUDGET_US:.0f} µs a request.")


if __name__ == "__main__":
    sys.exit(main())

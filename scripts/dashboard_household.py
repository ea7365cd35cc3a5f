"""A household for the picture of the dashboard: devices, policies, three days of decisions, a request, reviews, rules, words.

All names, addresses and visits are invented. The same seed gives the same household.
"""

import math
import random
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

from gatewayfilter import wiring
from gatewayfilter.config import Settings, load
from gatewayfilter.interfaces import CrawlRequest, Priority, UnblockRequest
from gatewayfilter.model import (
    Classification,
    Client,
    EntryKind,
    Evidence,
    Group,
    LearnedEntry,
    ListAction,
    LogRecord,
    ManualRule,
    Policy,
    Quota,
    QuotaKind,
    ReviewKind,
    ReviewTask,
    Schedule,
    ScheduleEffect,
    Window,
    parse_matcher,
)
from gatewayfilter.store import Store
from gatewayfilter.urls import parse_url

ZONE: Final = "Europe/Berlin"
_DAYS: Final = 3
_A_DAY: Final = 9_000
_LISTED: Final = 3_400
_SEED: Final = 7


class Device(NamedTuple):
    """A device, with what share of the household's requests it makes."""

    name: str
    address: str
    group: str
    icon: str
    share: int


DEVICES: Final = (
    Device("Kim's tablet", "192.168.1.20", "Children", "tablet", 30),
    Device("Ben's laptop", "192.168.1.21", "Children", "laptop", 25),
    Device("Ada's phone", "192.168.1.10", "Parents", "phone", 20),
    Device("Living-room TV", "192.168.1.40", "default", "tv", 15),
    Device("Work laptop", "192.168.1.11", "Parents", "laptop", 10),
)
_SITES: Final = (
    ("news.example", "/today"), ("wiki.example", "/harbour"), ("school.example", "/timetable"), ("shop.example", "/basket"),
    ("video.example", "/watch?v=41"), ("weather.example", "/"), ("mail.example", "/inbox"), ("maps.example", "/route"),
    ("library.example", "/search?q=volcano"), ("radio.example", "/live"), ("recipes.example", "/soup"), ("trains.example", "/"),
)  # fmt: skip


class Kind(NamedTuple):
    """A kind of blocked request."""

    weight: int
    url: str
    reason: str
    source_list: str
    rule: str
    category: str
    resource_type: str = "script"


_BLOCKED: Final = (
    Kind(40, "https://ads.example/banner.js", "adblock", "easylist", "||ads.example^$third-party", "ads"),
    Kind(18, "https://pixel.tracker.example/t.gif", "adblock", "easyprivacy", "||tracker.example^", "tracking", "image"),
    Kind(14, "https://metrics.example/collect", "blacklist", "peter-lowe", "metrics.example", "tracking", "xmlhttprequest"),
    Kind(9, "https://blocks.games.example/play", "service", "policy: Children", "Roblox", "games", "document"),
    Kind(6, "https://lucky-wheel.example/bonus", "learned", "learned:gambling", "lucky-wheel.example", "gambling", "document"),
    Kind(5, "https://short-clips.example/", "schedule", "policy: Children", "bedtime", "", "document"),
    Kind(4, "https://parcel-fee.example/pay", "blacklist", "phishing-army", "parcel-fee.example", "phishing", "document"),
    Kind(4, "https://free-chips.example/slots", "learned", "learned:gambling", "free-chips.example", "gambling", "document"),
)  # fmt: skip


def fill_household(state: Path) -> None:
    """Fills an empty state folder whose newest decision is of now."""
    settings = load(options={"data_dir": state, "filter.timezone": ZONE}).settings
    wiring.prepare_data_dir(settings)
    now = time.time()
    with closing(wiring.open_store(settings)) as store:
        _people(store, now)
        _lists(settings, store, now)
        _learned(store, now)
        records = list(_decisions(now))
        for first in range(0, len(records), 5_000):
            store.log.write(records[first : first + 5_000])
        for step in (store.log_counter.step, store.log_indexer.step):
            while step():
                pass


def _people(store: Store, now: float) -> None:
    school = frozenset({0, 1, 2, 3, 6})
    windows = (Window(21 * 60, 6 * 60 + 30, school), Window(22 * 60 + 30, 8 * 60, frozenset({4, 5})))
    children = Policy("Children", services={"roblox": True, "tiktok": True}, requests={"safesearch": "on"})
    items = [
        children,
        Policy("Parents"),
        Schedule("bedtime", "Children", ScheduleEffect.BLOCK_ALL, windows, ZONE),
        Quota("games", "Children", QuotaKind.CATEGORY, "games", 60, ZONE),
        Group("Children", "Children", "Kim and Ben"),
        Group("Parents", "Parents"),
        *(Client(one.name, (parse_matcher(one.address),), one.group, icon=one.icon) for one in DEVICES),
    ]
    store.policies.change(lambda _: [(item, True) for item in items], now)
    store.devices.seen({"192.168.1.77": "b8:27:eb:10:20:30"}, now - 4_000)
    store.devices.named(["192.168.1.77"], {"192.168.1.77": "printer"}, now)


def _lists(settings: Settings, store: Store, now: float) -> None:
    text = settings.data_dir / "list.txt"
    text.write_text("".join(f"0.0.0.0 advert{number}.example\n" for number in range(_LISTED)), encoding="utf-8")
    wiring.subscriptions(settings).add(str(text), name="peter-lowe", category="ads")
    text.unlink()
    domain, url = EntryKind.DOMAIN, EntryKind.URL
    rules = (
        ManualRule(0, ListAction.ALLOW, domain, ".school.example", comment="needed for homework"),
        ManualRule(0, ListAction.BLOCK, domain, ".short-clips.example", comment="agreed with Kim", group="family"),
        ManualRule(0, ListAction.ALLOW, url, "games.example/chess", expires_at=now + 5e4),
    )
    store.lists.add_rules(rules)


def _learned(store: Store, now: float) -> None:
    text = "Welcome to the lucky wheel\nSpin now and claim your casino bonus\nFree spins for every new player, today only"
    words = (("casino bonus", 36.0, "title"), ("free spins", 8.0, "main"), ("lucky wheel", 12.0, "title"))
    evidence = tuple(Evidence(word, "gambling", weight, zone, 0) for word, weight, zone in words)
    judged = Classification("gambling", 56.0, 20.0, {"gambling": 56.0}, evidence, "Lucky wheel", certainty=0.98)
    for number, host in enumerate(("lucky-wheel.example", "free-chips.example", "spin-palace.example")):
        address = f"https://{host}/bonus"
        key = parse_url(address).key
        task = ReviewTask(0, ReviewKind.PAGE, address, key, "gambling", judged, True, now - 7_000 * (number + 1), text=text)
        store.reviews.add(task)
        detail = "score 56.0 (limit 20.0): casino bonus, lucky wheel, free spins"
        entry = LearnedEntry(key, ListAction.BLOCK, "gambling", address, detail, now - 7_000, now + 90 * 86_400)
        store.lists.put_learned([entry])
    asked = UnblockRequest(
        "https://blocks.games.example/play", "192.168.1.20", "service", "policy: Children", "Roblox", "games",
        "Ben and I want to finish our castle", now - 400, client_name="Kim's tablet",
    )  # fmt: skip
    store.unblock.ask([asked])
    store.frontier.add([CrawlRequest(f"https://{host}/", Priority.VISIT) for host, _ in _SITES[:4]], now)


def _decisions(now: float) -> Iterator[LogRecord]:
    """Yields decisions, oldest first: few at night, most in the evening."""
    chance = random.Random(_SEED)
    weights = [kind.weight for kind in _BLOCKED]
    moments = sorted(_moment(chance, now) for _ in range(_DAYS * _A_DAY))
    for at in moments:
        device = chance.choices(DEVICES, [one.share for one in DEVICES])[0]
        if chance.random() < (0.16 if device.group == "Children" else 0.1):
            kind = chance.choices(_BLOCKED, weights)[0]
            yield LogRecord(
                at, device.address, "GET", kind.url, kind.resource_type, "block", kind.reason, kind.source_list, kind.rule,
                kind.category, 12,
            )  # fmt: skip
        else:
            host, path = chance.choices(_SITES, range(len(_SITES), 0, -1))[0]
            yield LogRecord(at, device.address, "GET", f"https://{host}{path}", "document", "allow", "unknown", elapsed_us=9)


def _moment(chance: random.Random, now: float) -> float:
    while True:
        at = now - chance.random() * _DAYS * 86_400
        hour = (time.gmtime(at).tm_hour + time.gmtime(at).tm_min / 60 + 1) % 24
        if chance.random() < 0.06 + 0.94 * math.exp(-(((hour - 17.5) / 4.5) ** 2)):
            return at

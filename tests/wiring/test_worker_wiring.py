"""What a proxy worker is joined from, by its settings and with or without a database: `gatewayfilter.wiring.proxy`.

The parts are doubles that only note what they are made of; what they do is tested in their rooms.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.errors import StartupError
from gatewayfilter.interfaces import CrawlRequest
from gatewayfilter.telemetry import Counters
from gatewayfilter.wiring import proxy
from gatewayfilter.wiring.storage import categories, category_title
from tests.all_modules import import_all

import_all()

MADE = (
    "UsageCounter", "UnblockFollower", "NeighbourFollower", "ServiceFollower", "EngineFollower", "StoreWriter", "PageSpool",
    "UnblockForm", "BlockPages", "OwnRequests", "OtlpClient", "DecisionTraces", "DecisionRecorder", "HostPolicy",
    "FilterServices", "GatewayAddon", "WorkerComponents", "ReconnectingStore", "Users",
)  # fmt: skip


class Part:
    """Something with any attribute; equal to what is called the same."""

    def __init__(self, name: str, *given: object, **named: object) -> None:
        self.called, self.given, self.named = name, given, named

    def __getattr__(self, name: str) -> Part:
        if name.startswith("__"):
            raise AttributeError(name)
        found = Part(f"{self.called}.{name}")
        setattr(self, name, found)
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Part) and other.called == self.called

    def __hash__(self) -> int:
        return hash(self.called)


STORE: Any = Part("store")
ENGINE: Any = Part("engine")
FOLDER: Any = Part("folder")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The parts that were made, by their names."""
    found: dict[str, Any] = {}

    def double(name: str) -> Any:
        def make(*given: object, **named: object) -> Part:
            found[name] = Part(name, *given, **named)
            made: Part = found[name]
            return made

        return make

    for name in MADE:
        monkeypatch.setattr(proxy, name, double(name))
    monkeypatch.setattr(proxy, "load_key", lambda folder, name: (folder, name))
    monkeypatch.setattr(proxy, "open_pinned_apps", lambda _settings, _counters: "pinned apps")
    monkeypatch.setattr(proxy, "newest_engine", lambda _settings: ENGINE)
    monkeypatch.setattr(proxy, "setup_pages", lambda _settings, _engine: "own pages")
    monkeypatch.setattr(proxy, "load_client_key", lambda _folder: b"key")
    return found


def settings_of(**sections: object) -> Settings:
    return Settings.model_validate({"data_dir": "/dev/null/state", **sections})


def test_a_worker_with_a_database_logs_learns_and_follows(made: dict[str, Any]) -> None:
    inspector: Any = Part("inspector")
    title: Any = Part("title")
    settings = settings_of()
    found: Any = proxy.assemble_components(settings, ENGINE, FOLDER, STORE, inspector=inspector, title_of=title)
    assert found is made["WorkerComponents"]
    writer, services = made["StoreWriter"], made["FilterServices"].named
    assert made["UsageCounter"].given[0] is ENGINE
    assert (writer.given[:2], writer.named["ask"], writer.named["redeem"]) == (
        (STORE.frontier.add, STORE.log.write),
        STORE.unblock.ask,
        STORE.unblock.redeem,
    )
    assert (writer.named["usage"], writer.named["add_uses"]) == (made["UsageCounter"], STORE.usage.add)
    assert made["EngineFollower"].given[:3] == (ENGINE, FOLDER, STORE.feed)
    assert made["EngineFollower"].named["beside"] == (made["ServiceFollower"].follow_once, made["UsageCounter"].refresh)
    assert made["UnblockFollower"].given == (STORE.unblock.changes, made["OwnRequests"])
    assert made["OwnRequests"].given[1:3] == (ENGINE, made["DecisionRecorder"].client)
    assert made["UnblockForm"].given[:4] == (ENGINE, writer.asks.take, writer.redeems.take, made["OwnRequests"])
    assert made["UnblockForm"].named == {"takes_requests": True}
    assert (services["offers"], services["passed"], services["inspect"]) == (writer.offers, made["PageSpool"], inspector)
    assert (services["recorder"], services["unblock_form"], services["pages"]) == (
        made["DecisionRecorder"],
        made["UnblockForm"],
        made["BlockPages"],
    )
    assert made["BlockPages"].named == {"own_requests": made["OwnRequests"], "title_of": title, "short": False}
    assert made["GatewayAddon"].named == {"on_start": None, "on_stop": None}
    assert (found.given[0], found.given[5].engine, found.given[5].recorder) == (
        made["GatewayAddon"],
        ENGINE,
        services["recorder"],
    )


def test_a_worker_without_a_database_only_filters(made: dict[str, Any]) -> None:
    found: Any = proxy.assemble_components(settings_of(), ENGINE, FOLDER, None)
    assert found is made["WorkerComponents"]
    services = made["FilterServices"].named
    assert made["UsageCounter"].given[0] is None
    assert made["EngineFollower"].given[2] is None
    assert not {"StoreWriter", "UnblockFollower", "OwnRequests", "UnblockForm", "PageSpool", "DecisionRecorder"} & set(made)
    for name in ("recorder", "offers", "passed", "inspect", "unblock_form"):
        assert services[name] is None, name
    assert made["BlockPages"].named["own_requests"] is None


@pytest.mark.parametrize("learns", [(False, True), (True, False)])
def test_pages_are_offered_and_kept_only_where_they_are_learned_of(made: dict[str, Any], learns: tuple[bool, bool]) -> None:
    enabled, passive = learns
    proxy.assemble_components(settings_of(learn={"enabled": enabled, "passive": passive}), ENGINE, FOLDER, STORE)
    assert (made["FilterServices"].named["offers"] is not None) is enabled
    assert made["FilterServices"].named["passed"] is None


def test_a_page_for_which_there_is_no_room_is_queued_and_counted(made: dict[str, Any]) -> None:
    offered: list[CrawlRequest] = []
    proxy.assemble_components(settings_of(), ENGINE, FOLDER, STORE)
    counters = made["WorkerComponents"].given[1]
    made["StoreWriter"].offers.offer = offered.append
    folder, dropped = made["PageSpool"].given
    assert folder == Path("/dev/null/state/spool")
    dropped("http://a.example/")
    assert (offered, counters["captures_dropped"]) == ([CrawlRequest("http://a.example/")], 1)


def test_block_pages_and_forms_are_as_set(made: dict[str, Any]) -> None:
    proxy.assemble_components(settings_of(proxy={"unblock_requests": False, "block_details": "short"}), ENGINE, FOLDER, STORE)
    assert (made["BlockPages"].named["own_requests"], made["BlockPages"].named["short"]) == (None, True)
    assert made["UnblockForm"].named == {"takes_requests": False}, "links are redeemed all the same"


def test_decisions_are_recorded_as_set(made: dict[str, Any]) -> None:
    proxy.assemble_components(settings_of(), ENGINE, FOLDER, STORE, client_key=b"key")
    plain = made["DecisionRecorder"]
    assert plain.given == (made["StoreWriter"].log.write, settings_of().log.privacy, None)
    assert plain.named == {"details": ENGINE, "exclusions": None}
    assert "DecisionTraces" not in made
    log = {"hash_clients": True, "ignored_hosts": ["a.example"], "privacy": "host"}
    metrics = {"trace_share": 0.5, "otlp": "http://127.0.0.1:4318"}
    proxy.assemble_components(settings_of(log=log, metrics=metrics), ENGINE, FOLDER, STORE, client_key=b"key")
    hashed, traces = made["DecisionRecorder"], made["DecisionTraces"]
    assert hashed.given == (traces.write, "host", b"key")
    assert hashed.named["exclusions"] is not None
    assert (traces.given[0], traces.given[1], traces.given[2]) == (made["StoreWriter"].log.write, made["OtlpClient"], 0.5)


class Steps:
    """A part that notes when it starts and stops."""

    def __init__(self, name: str, steps: list[str]) -> None:
        self._name, self._steps = name, steps

    def start(self) -> None:
        self._steps.append(f"start {self._name}")

    def stop(self) -> None:
        self._steps.append(f"stop {self._name}")


def test_the_parts_start_in_order_and_stop_in_reverse(made: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    names = ("StoreWriter", "PageSpool", "EngineFollower", "NeighbourFollower", "UnblockFollower")
    for name in names:

        def make(*_: object, name: str = name, **__: object) -> Any:
            part: Any = Part(name)
            double = Steps(name, steps)
            part.start, part.stop = double.start, double.stop
            return part

        monkeypatch.setattr(proxy, name, make)
    inspector: Any = Steps("inspector", steps)
    found: Any = proxy.assemble_components(settings_of(), ENGINE, FOLDER, STORE, inspector=inspector)
    _, _, start, stop, facts, _ = found.given
    start()
    order = ["StoreWriter", "PageSpool", "inspector", *names[2:]]
    assert steps == [f"start {name}" for name in order]
    steps.clear()
    stop()
    assert steps == [f"stop {name}" for name in reversed(order)]
    info = ENGINE.snapshot.info
    assert facts() == {"snapshot": {"created_at": info.created_at, "feed_seq": info.feed_seq}, "feed_seq": ENGINE.feed_seq}
    refreshed: list[bool] = []
    pages: Any = Part("pages")
    pages.refresh = lambda: refreshed.append(True)
    found = proxy.assemble_components(settings_of(), ENGINE, FOLDER, STORE, internal_pages=pages)
    assert (found.given[4]()["feed_seq"], refreshed) == (ENGINE.feed_seq, [True])
    assert made["FilterServices"].named["internal_pages"] is pages


def test_a_stock_mitmproxy_starts_the_rest_itself(made: dict[str, Any]) -> None:
    found: Any = proxy.assemble_components(settings_of(), ENGINE, FOLDER, STORE, standalone=True)
    named = made["GatewayAddon"].named
    assert (named["on_start"], named["on_stop"]) == (found.given[2], found.given[3])
    assert (found.given[5].pinned_apps, found.given[5].usage) == (None, made["UsageCounter"])
    assert "HostPolicy" not in made


def test_a_worker_opens_the_newest_lists_and_a_database_that_may_be_away(made: dict[str, Any]) -> None:
    decided: list[Any] = []
    ENGINE.decide = decided.append
    found: Any = proxy.worker_components(settings_of(log={"retention_mb": 7, "hash_clients": True}))
    assert found is made["WorkerComponents"]
    assert [str(request.url) for request in decided] == ["http://first.invalid/"]
    assert made["ReconnectingStore"].given[1] == 7_000_000
    assert (made["DecisionRecorder"].given[2], made["FilterServices"].named["internal_pages"]) == (b"key", "own pages")
    assert made["BlockPages"].named["title_of"]("ads", "en") == category_title(categories(), "ads", "en")
    proxy.worker_components(settings_of(), standalone=True)
    assert (made["FilterServices"].named["internal_pages"], made["DecisionRecorder"].given[2]) == (None, None)
    assert made["GatewayAddon"].named["on_start"] is not None


def test_connections_are_decided_with_users_where_there_is_a_file(made: dict[str, Any], tmp_path: Path) -> None:
    recorder: Any = Part("recorder")
    counters = Counters()
    found: Any = proxy.assemble_services(settings_of(), ENGINE, recorder, counters)
    assert (found.users, found.policy, found.pinned_apps, found.recorder) == (None, made["HostPolicy"], "pinned apps", recorder)
    assert made["UsageCounter"].given == (None, counters)
    usage: Any = Part("usage")
    found = proxy.assemble_services(settings_of(proxy={"auth_file": tmp_path / "users"}), ENGINE, None, counters, usage)
    assert (found.users, found.usage, made["HostPolicy"].named["usage"]) == (made["Users"], usage, usage)
    assert made["Users"].given == (tmp_path / "users",)
    transparent = {"auth_file": tmp_path / "users", "mode": "transparent", "listen": "[::]:8080"}
    with pytest.raises(StartupError, match=r"proxy\.auth_file cannot be used in transparent mode"):
        proxy.assemble_services(settings_of(proxy=transparent), ENGINE, None, counters)

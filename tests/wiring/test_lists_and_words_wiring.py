"""What publication, the engine, the filter's own pages, the database and the classifier are joined from:
`gatewayfilter.wiring.filtering`, `gatewayfilter.wiring.storage`, `gatewayfilter.wiring.classification`,
`gatewayfilter.wiring.notification`, `gatewayfilter.wiring.integration`.

The parts are doubles that only note what they are made of; what they do is tested in their rooms.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.config import bundled_folder
from gatewayfilter.errors import SnapshotError
from gatewayfilter.proxy.pages.setup_translations import GatewayFacts
from gatewayfilter.telemetry import Counters
from gatewayfilter.wiring import classification, filtering, integration, notification, recovery, storage
from tests.wiring.test_worker_wiring import Part, settings_of

STATE = Path("/dev/null/state")
STORE: Any = Part("store")
WORDS = [bundled_folder() / "words", STATE / "words"]


def doubled(monkeypatch: pytest.MonkeyPatch, module: object, *names: str) -> dict[str, Any]:
    """Puts doubles in the places of classes and functions; returns those that were made, by their names."""
    made: dict[str, Any] = {}
    for name in names:

        def make(*given: object, name: str = name, **named: object) -> Any:
            made[name] = Part(name, *given, **named)
            return made[name]

        if isinstance(module, str):
            monkeypatch.setattr(f"{module}.{name}", make)
        else:
            monkeypatch.setattr(module, name, make)
    return made


def test_lists_are_published_with_what_is_local(monkeypatch: pytest.MonkeyPatch) -> None:
    made = doubled(monkeypatch, "gatewayfilter.sources.publish", "publish", "publish_base")
    base: list[Path | None] = [None]
    monkeypatch.setattr(filtering, "publisher_snapshot", lambda _settings: base[0])
    monkeypatch.setattr(filtering, "snapshot_folder", lambda _settings: "folder")
    monkeypatch.setattr(filtering, "subscriptions", lambda _settings: "lists")
    progress: Any = Part("progress")
    settings = settings_of()
    assert filtering.publish_now(settings, STORE, progress, full=True) == made["publish"]
    assert made["publish"].given == ("folder", "lists", STORE.lists, STORE.feed)
    assert made["publish"].named == {"policies": STORE.policies, "progress": progress, "full": True}
    filtering.publish_now(settings, STORE)
    assert made["publish"].named == {"policies": STORE.policies, "progress": None, "full": False}
    base[0] = Path("/base")
    assert filtering.publish_now(settings, STORE) == made["publish_base"]
    assert made["publish_base"].given == ("folder", Path("/base"), STORE.lists, STORE.feed, STORE.policies)


def test_a_first_snapshot_is_published_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    published: list[object] = []
    applied: list[object] = []
    engine: Any = SimpleNamespace(feed_seq=4)

    def apply(changes: tuple[int, ...]) -> None:
        applied.append(changes)
        engine.feed_seq = changes[-1]

    def newest(settings: object, *, clock: Callable[[], float]) -> Any:
        if not published:
            raise SnapshotError("none")
        engine.clock = clock
        return engine

    engine.apply = apply
    changes = {4: (5, 6), 6: (7,), 7: ()}
    store: Any = SimpleNamespace(feed=SimpleNamespace(read=changes.__getitem__))
    monkeypatch.setattr(filtering, "newest_engine", newest)
    monkeypatch.setattr(filtering, "publish_now", lambda *given: published.append(given))
    settings = settings_of()
    assert filtering.open_engine(settings, store, clock=float) is engine
    assert (published, applied, engine.clock) == ([(settings, store)], [(5, 6), (7,)], float)
    filtering.open_engine(settings, store)
    assert len(published) == 1


def test_an_engine_over_the_enabled_sources_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    made = doubled(monkeypatch, "gatewayfilter.engine.filter_engine", "FilterEngine")
    monkeypatch.setattr("gatewayfilter.engine.snapshot.reader.Snapshot.from_bytes", lambda data: ("snapshot", data))
    monkeypatch.setattr("gatewayfilter.sources.publish.build_snapshot", lambda files: (f"built of {files}", None))
    monkeypatch.setattr(filtering, "subscriptions", lambda _settings: SimpleNamespace(files=lambda: "files"))
    assert filtering.unpublished_engine(settings_of(filter={"disabled_categories": ["ads"]})) == made["FilterEngine"]
    assert (made["FilterEngine"].given, made["FilterEngine"].named) == (
        (("snapshot", "built of files"),),
        {"off_categories": ("ads",)},
    )


def test_the_filters_own_pages_know_the_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    made = doubled(monkeypatch, "gatewayfilter.proxy.pages.setup_pages", "SetupPages")
    found: list[Any] = [None]
    monkeypatch.setattr("gatewayfilter.certificates.authority.use_ca", lambda folder: ("ca", folder))
    monkeypatch.setattr("gatewayfilter.certificates.renewal.next_authority", lambda folder: ("next", folder))
    monkeypatch.setattr("gatewayfilter.gateway.doh_servers.blocked_resolvers", lambda engine: ("resolvers", engine))
    monkeypatch.setattr("gatewayfilter.gateway.pac.pac_file", lambda gateway, proxy, *, own_hosts: (gateway, proxy, own_hosts))
    monkeypatch.setattr("gatewayfilter.gateway.runtime_state.RuntimeStateFile", lambda: SimpleNamespace(read=lambda: found[0]))
    settings = settings_of()
    engine: Any = "engine"
    assert filtering.setup_pages(settings, engine) == made["SetupPages"]
    given, ca, pac, facts, following, resolvers, _ = made["SetupPages"].given
    assert (given, ca, following()) == (settings, ("ca", STATE / "ca"), ("next", STATE / "ca"))
    assert (pac("h:1"), resolvers()) == ((settings.gateway, "h:1", settings.gateway.hosts), ("resolvers", "engine"))
    assert facts() == GatewayFacts()
    found[0] = SimpleNamespace(quic_rejected=True, dot_rejected=False)
    assert facts() == GatewayFacts(True, True, False)


def test_a_database_is_filled_of_a_snapshot_where_there_was_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    opened: list[Any] = []
    shared: list[Any] = []
    filled: list[Any] = []
    store: Any = SimpleNamespace(frontier=SimpleNamespace(max_waiting=0))

    def open_(url: str, **named: Any) -> Any:
        opened.append((url, named))
        return store

    monkeypatch.setattr("gatewayfilter.store.Store.open", open_)
    monkeypatch.setattr("gatewayfilter.wiring.shared.share_queue", lambda *given: shared.append(given))
    monkeypatch.setattr("gatewayfilter.wiring.recovery.fill_from_snapshot", lambda folder, store: filled.append((folder, store)))
    settings = settings_of(data_dir=tmp_path / "state", crawl={"max_waiting": 9})
    counters = Counters()
    before: Any = Part("before")
    assert storage.open_store(settings, before_upgrade=before, counters=counters) is store
    assert opened.pop() == (settings.store_url, {"before_upgrade": before, "fill": None})
    assert (shared, store.frontier.max_waiting) == ([(settings, store, counters)], 9)
    assert (tmp_path / "state").is_dir()
    (tmp_path / "state" / "snapshots").mkdir()
    storage.open_store(settings)
    opened[0][1]["fill"]("new")
    assert filled[0][1] == "new"
    assert filled[0][0].open_newest is not None


def test_the_classifier_is_over_the_words_and_rules_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    made = doubled(monkeypatch, "gatewayfilter.classify", "CustomWords", "RuleBook", "ReloadingClassifier", "load_classifier")
    settings = settings_of(classify={"strictness": "strict"})
    assert classification.custom_words(settings) == made["CustomWords"]
    assert made["CustomWords"].given == (STATE / "words",)
    assert classification.words_folders(settings) == WORDS
    found: Any = classification.reloading_classifier(settings)
    named = {
        "extractor": settings.classify.extractor,
        "rules": made["RuleBook"],
        "topics": settings.classify.topics,
        "strictness": settings.classify.strictness,
    }
    assert (found == made["ReloadingClassifier"], found.given, found.named) == (True, (WORDS,), named)
    rules: Any = Part("rules")
    made.pop("RuleBook")
    other: Any = classification.reloading_classifier(settings, rules)
    assert (other.named["rules"], "RuleBook" in made) == (rules, False)
    plain: Any = classification.classifier(settings)
    assert (plain == made["load_classifier"], plain.given) == (True, (WORDS, settings.classify.extractor, made["RuleBook"]))
    assert plain.named == {"topics": settings.classify.topics, "strictness": settings.classify.strictness}
    closing: list[Any] = []
    store: Any = Part("store")
    store.before_close = closing.append
    counts = doubled(monkeypatch, "gatewayfilter.extraction.match_counts", "MatchCounts")
    book: Any = classification.rule_book(settings, store)
    assert (book.given, book.named, closing) == (
        (STATE / "rules",),
        {"matches": counts["MatchCounts"]},
        [counts["MatchCounts"].flush],
    )
    assert counts["MatchCounts"].given == (store.rule_matches.add,)
    alone: Any = classification.rule_book(settings)
    assert (alone == made["RuleBook"], alone.named) == (True, {})
    folder = doubled(monkeypatch, "gatewayfilter.extraction.rule_folder", "RuleFolder")
    assert classification.rules_folder(settings) == folder["RuleFolder"]
    assert folder["RuleFolder"].given == (STATE / "rules",)


def test_words_are_kept_until_their_version_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[Any] = []
    versions = ["a"]

    def load(folders: list[Path]) -> int:
        loads.append(folders)
        return len(loads)

    def version_of(folders: list[Path], *, topics: object, strictness: object) -> str:
        assert (folders, topics, strictness) == (WORDS, settings.classify.topics, settings.classify.strictness)
        return versions[-1]

    settings = settings_of()
    monkeypatch.setattr("gatewayfilter.classify.Lexicon.load", load)
    monkeypatch.setattr("gatewayfilter.classify.words_version", version_of)
    monkeypatch.setattr(classification, "rule_book", lambda _settings: SimpleNamespace(version=lambda: "+rules"))
    assert classification.words_in_use(settings) == "a+rules"
    classification._lexicon_of.cache_clear()
    first = classification.kept_lexicon(settings)
    assert classification.kept_lexicon(settings) == first
    versions.append("b")
    assert classification.kept_lexicon(settings) != first
    assert loads == [WORDS, WORDS]
    classification._lexicon_of.cache_clear()
    loaded: Any = classification.load_lexicon(settings)
    assert (loaded, loads[2]) == (3, WORDS)


def test_each_channel_has_a_sender(monkeypatch: pytest.MonkeyPatch) -> None:
    made = doubled(monkeypatch, notification, "Notifier", "ChannelSender")
    monkeypatch.setattr(notification, "open_channels", lambda _notify: ["ntfy", "mail"])
    settings = settings_of()
    counters = Counters()
    assert notification.notifier(settings, STORE, counters) == made["Notifier"]
    (senders,) = made["Notifier"].given
    assert [sender.given for sender in senders] == [
        (channel, STORE.notifications, settings.notify, counters) for channel in ("ntfy", "mail")
    ]


DECIDING = (
    "ReconnectingStore", "UsageCounter", "StoreWriter", "ServiceFollower", "EngineFollower", "DecisionRecorder",
    "RequestDecider", "UnknownPages", "NeighbourFollower",
)  # fmt: skip


def test_what_decides_for_other_proxies_is_joined_as_set(monkeypatch: pytest.MonkeyPatch) -> None:
    made = doubled(monkeypatch, integration, *DECIDING)
    decided: list[Any] = []
    engine: Any = Part("engine")
    engine.decide = decided.append
    monkeypatch.setattr(integration, "newest_engine", lambda _settings: engine)
    monkeypatch.setattr(integration, "load_client_key", lambda folder: ("key", folder))
    found = integration.deciding(settings_of(log={"retention_mb": 7}))
    assert [str(request.url) for request in decided] == ["http://first.invalid/"]
    assert (found.decider, found.engine) == (made["RequestDecider"], engine)
    assert made["ReconnectingStore"].given[1] == 7_000_000
    assert (made["DecisionRecorder"].given[2], made["DecisionRecorder"].named["exclusions"]) == (None, None)
    assert made["RequestDecider"].named["pages"] == made["UnknownPages"]
    writer = made["StoreWriter"]
    assert (writer.named["usage"], writer.named["gather_s"]) == (made["UsageCounter"], 0.1)
    assert made["EngineFollower"].named["beside"] == (made["ServiceFollower"].follow_once, made["UsageCounter"].refresh)
    settings = settings_of(log={"hash_clients": True, "ignored_hosts": ["a.example"]}, learn={"enabled": False})
    integration.deciding(settings)
    assert made["DecisionRecorder"].given[2] == ("key", STATE)
    assert made["DecisionRecorder"].named["exclusions"] is not None
    assert made["RequestDecider"].named["pages"] is None


def test_policies_of_a_lost_database_are_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    changed: list[Any] = []
    steps: list[Any] = []
    monkeypatch.setattr("gatewayfilter.wiring.recovery.time", SimpleNamespace(time=lambda: 5.0))
    info = SimpleNamespace(feed_seq=7, learned=0)
    held: Any = SimpleNamespace(policies=("kids", "tv"), rules=(), records=(), info=info, close=lambda: steps.append("closed"))
    store: Any = SimpleNamespace(
        policies=SimpleNamespace(change=lambda change, now: changed.append((change(None), now))),
        lists=SimpleNamespace(add_rules=steps.append, put_learned=steps.append),
        feed=SimpleNamespace(begin_after=steps.append),
    )
    folder: Any = SimpleNamespace(open_newest=lambda: (held, ()))
    assert recovery.fill_from_snapshot(folder, store) == 0
    assert (changed, steps) == ([([("kids", True), ("tv", True)], 5.0)], [[], 7, "closed"])
    held.policies = ()
    recovery.fill_from_snapshot(folder, store)
    assert len(changed) == 1, "where there are none, nothing is changed"

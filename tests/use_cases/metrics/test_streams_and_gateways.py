"""The stream of decisions to Kafka, and gateways in step with each other, as this machine sees them."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.config import Settings, load
from gatewayfilter.crawl.frontier.hash_ring import HashRing
from gatewayfilter.model import LogRecord
from gatewayfilter.store import Store
from gatewayfilter.store.repositories.crawling.frontier_holds import site_slot
from gatewayfilter.use_cases.learning.crawler_facts import crawler_facts, meaning
from gatewayfilter.use_cases.metrics.decision_stream import decision_stream, send_from_oldest
from gatewayfilter.use_cases.metrics.shared_gateways import shared_gateways

type Running = Callable[..., Settings]


@pytest.fixture
def running(tmp_path: Path, store: Store) -> Running:
    """Returns settings; the processes that are named run."""
    assert store

    def run(options: dict[str, Any], **processes: dict[str, Any]) -> Settings:
        folder = tmp_path / "state" / "run"
        folder.mkdir(exist_ok=True)
        for name, facts in processes.items():
            (folder / f"{name.replace('_', '-')}.json").write_text(json.dumps({"pid": os.getpid()} | facts))
        return load(environ={}, options={"data_dir": tmp_path / "state", **options}).settings

    return run


def log(store: Store, count: int) -> None:
    store.log.write([LogRecord(1.0, "10.0.0.1", "GET", "http://a.example/", "image", "allow", "unknown")] * count)


def test_a_stream_that_was_never_started(running: Running, store: Store) -> None:
    found = decision_stream(running({"kafka.decisions": "d", "kafka.brokers": "b:9092"}), store)
    assert (found.topic, found.brokers, found.state, found.fault) == ("d", "b:9092", "stopped", "")
    assert (found.position, found.waiting) == (None, 0)
    assert found.sentence == "nothing was sent yet; 0 wait; the filter does not run."


def test_a_stream_tells_what_waits_and_why(running: Running, store: Store) -> None:
    log(store, 3)
    store.log_followers.move("kafka", 1)
    found = decision_stream(running({}, decisions={"state": "sending"}), store)
    assert (found.position, found.waiting, found.sentence) == (1, 2, "sent up to decision 1; 2 wait.")
    settings = running({"log.privacy": "off"}, decisions={"state": "away", "fault": "no broker"})
    found = decision_stream(settings, store)
    assert (found.state, found.fault) == ("away", "no broker")
    assert found.sentence == (
        "sent up to decision 1; 2 wait; there is no decision log (log.privacy = off); Kafka does not take them: no broker."
    )
    send_from_oldest(store)
    assert decision_stream(settings, store).waiting == 3


@pytest.mark.parametrize(
    ("options", "sync", "sentence"),
    [
        ({}, {}, "This gateway shares no rules with others (sync.url)."),
        ({"sync.url": "redis://127.0.0.1:9"}, {}, "The filter does not run."),
        ({"sync.url": "redis://127.0.0.1:9"}, {"fault": "Redis is away"}, "Not in step: Redis is away."),
        (
            {"sync.url": "redis://127.0.0.1:9"},
            {"gateways": ["one"], "shared": 1200},
            "In step: 1 gateway shares 1,200 rules, policies and sources.",
        ),
        (
            {"sync.url": "redis://127.0.0.1:9"},
            {"gateways": ["one", "two"], "shared": 3},
            "In step: 2 gateways share 3 rules, policies and sources.",
        ),
    ],
)
def test_gateways_in_step(options: dict[str, Any], sync: dict[str, Any], sentence: str, running: Running, store: Store) -> None:
    found = shared_gateways(running(options, **({"sync": sync} if sync else {})), store)
    assert (found.sentence, found.fault, found.shared) == (sentence, sync.get("fault", ""), sync.get("shared", 0))
    assert (found.gateways, found.crawlers, found.owner) == (tuple(sync.get("gateways", ())), (), "")


def test_a_damaged_status_names_no_gateway(running: Running, store: Store) -> None:
    assert shared_gateways(running({}, sync={"gateways": "one"}), store).gateways == ()


def test_a_host_has_one_of_the_crawlers_that_are_alive(running: Running, store: Store) -> None:
    settings = running({})
    assert shared_gateways(settings, store, "a.example").owner == ""
    now = time.time()
    store.crawlers.beat("gone", now - 10_000)
    store.crawlers.beat("one", now)
    store.crawlers.beat("two", now)
    found = shared_gateways(settings, store, "www.a.example")
    assert set(found.crawlers) == {"one", "two"}
    assert found.owner == shared_gateways(settings, store, "A.example").owner, "one site has one crawler"
    hosts = [f"h{number}.example" for number in range(40)]
    owners = [shared_gateways(settings, store, host).owner for host in hosts]
    assert set(owners) == {"one", "two"}
    ring = HashRing(("one", "two"))
    assert owners == [ring.owner(str(site_slot(f"http://{host}/"))) for host in hosts], "as the crawlers share them"


def test_crawlers_are_counted_together(running: Running) -> None:
    options = {"crawl.workers": 3, "crawl.proxies": ["http://127.0.0.1:9"], "learn.enabled": False}
    nothing = crawler_facts(running(options))
    assert (nothing.running, nothing.dns_hit_share, set(nothing.counters.values())) == ((), None, {0})
    settings = running(
        options,
        learner={"counters": {"pages_fetched": 3, "dns_hits": 3, "dns_misses": 0, "unknown": 9}},
        crawler_1={"counters": {"pages_fetched": 4, "dns_misses": 1, "pages_failed": "x"}},
        crawler_2={"counters": "damaged"},
        crawler_3={"counters": {"pages_fetched": 100}},
    )
    found = crawler_facts(settings)
    assert found.running == ("learner", "crawler-1", "crawler-2")
    assert (found.counters["pages_fetched"], found.counters["pages_failed"], found.dns_hit_share) == (7, 0, 0.75)
    assert "unknown" not in found.counters
    assert (found.learning, found.proxies) == (False, 1)
    assert crawler_facts(running({"learn.enabled": True})).learning
    assert meaning("pages_fetched")

"""The crawl queue as its operator sees and changes it: pages, tasks, hosts, pauses, retries, additions."""

from pathlib import Path

import pytest

from gatewayfilter.config import Settings, load
from gatewayfilter.errors import FetchError, MissingError
from gatewayfilter.interfaces import CrawlRequest, Hold, HoldKind, Priority, QueueState
from gatewayfilter.store import Store
from gatewayfilter.use_cases.learning import crawl_jobs
from gatewayfilter.use_cases.learning.crawl_queue import (
    Added,
    HostFacts,
    add_urls,
    clear_queue,
    pause_queue,
    queue_facts,
    queue_hosts,
    queue_page,
    queue_tasks,
    resume_queue,
    retry_failed,
)
from gatewayfilter.use_cases.learning.crawl_tasks import chosen_task

NOW = 1_800_000_000.0


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    tasks = {"forums": {"depth": 3, "priority": 70}, "news": {}}
    options = {"data_dir": tmp_path / "state", "learn.enabled": False, "crawl.tasks": tasks}
    return load(environ={}, options=options).settings


def _add(store: Store, *urls: str, task: str = "", not_before: float = 0.0) -> None:
    store.frontier.add([CrawlRequest(url, Priority.MANUAL, not_before, task) for url in urls], NOW)


def _give_up(store: Store, url: str, error: str, tries: int = 1) -> None:
    _add(store, url)
    for attempt in range(1, tries + 1):
        (lease,) = store.frontier.lease(1, 60, NOW)
        assert lease.url == url
        if attempt < tries:
            store.frontier.retry(lease, NOW, error)
        else:
            store.frontier.dead_letter(lease, error)


def test_the_queue_is_read_page_by_page(store: Store) -> None:
    urls = [f"http://h{number}.example/" for number in range(3)]
    _add(store, *urls)
    first = queue_page(store, None, "", 2)
    assert ([row.url for row in first.rows], bool(first.next)) == (urls[:2], True)
    second = queue_page(store, QueueState.WAITING, first.next, 2)
    assert ([row.url for row in second.rows], second.next) == (urls[2:], "")
    assert queue_page(store, QueueState.DEAD, "", 2).rows == ()


def test_a_pause_holds_until_it_is_taken_back(settings: Settings, store: Store) -> None:
    _add(store, "http://a.example/")
    assert pause_queue(settings, store, NOW)
    assert not pause_queue(settings, store, NOW + 5)
    facts = queue_facts(store, NOW + 6)
    assert (facts.paused_since, facts.holds, facts.counts["waiting"], facts.counts["due"]) == (NOW, (), 1, 1)
    assert store.frontier.lease(9, 60, NOW + 6) == []
    assert resume_queue(store)
    assert not resume_queue(store)
    assert [lease.url for lease in store.frontier.lease(9, 60, NOW + 6)] == ["http://a.example/"]


def test_one_task_or_host_is_paused_and_the_others_go_on(settings: Settings, store: Store) -> None:
    _add(store, "http://a.example/")
    _add(store, "http://b.example/", task="forums")
    _add(store, "http://c.example/", task="of-the-queue")
    assert pause_queue(settings, store, NOW, host="http://A.example/x")
    assert pause_queue(settings, store, NOW + 1, task="forums")
    assert pause_queue(settings, store, NOW + 2, task="of-the-queue")
    assert not pause_queue(settings, store, NOW + 3, task="forums")
    with pytest.raises(MissingError, match="there is no crawl task 'none'"):
        pause_queue(settings, store, NOW, task="none")
    assert set(queue_facts(store, NOW).holds) == {
        Hold(HoldKind.HOST, "a.example", NOW),
        Hold(HoldKind.TASK, "forums", NOW + 1),
        Hold(HoldKind.TASK, "of-the-queue", NOW + 2),
    }
    assert queue_facts(store, NOW).paused_since is None
    assert store.frontier.lease(9, 60, NOW) == []
    assert resume_queue(store, task="forums")
    assert not resume_queue(store, task="forums")
    assert [lease.url for lease in store.frontier.lease(9, 60, NOW)] == ["http://b.example/"]
    assert resume_queue(store, host="a.example")
    assert [lease.url for lease in store.frontier.lease(9, 60, NOW)] == ["http://a.example/"]


def test_tasks_of_settings_and_queue_are_listed_by_name(settings: Settings, store: Store) -> None:
    _add(store, "http://a.example/", "http://b.example/", task="old")
    _add(store, "http://c.example/", task="news")
    (lease,) = store.frontier.lease(1, 60, NOW)
    store.frontier.dead_letter(lease, "refused")
    store.task_sites.take("news", "c.example", 5, 9, NOW, 60)
    pause_queue(settings, store, NOW, task="old")
    found = {facts.name: facts for facts in queue_tasks(settings, store)}
    assert list(found) == ["forums", "news", "old"]
    assert found["forums"].strategy is not None
    assert (found["forums"].strategy.depth, found["forums"].links, found["forums"].held_since) == (3, 0, None)
    assert found["forums"].urls == {"waiting": 0, "leased": 0, "done": 0, "dead": 0}
    assert (found["old"].strategy, found["old"].held_since) == (None, NOW)
    assert found["old"].urls == {"waiting": 1, "leased": 0, "done": 0, "dead": 1}
    assert (found["news"].links, found["news"].urls["waiting"]) == (5, 1)


def test_hosts_are_listed_by_what_went_wrong(settings: Settings, store: Store) -> None:
    _give_up(store, "http://twice.example/1", "timed out", tries=2)
    _give_up(store, "http://twice.example/2", "refused")
    _give_up(store, "http://once.example/", "gone")
    _add(store, "http://once.example/late", not_before=NOW + 50)
    _add(store, "http://once.example/later", not_before=NOW + 90)
    _add(store, "http://calm.example/1", "http://calm.example/2")
    pause_queue(settings, store, NOW, host="held.example")
    found = queue_hosts(store, 9)
    assert [facts.host for facts in found] == ["held.example", "twice.example", "once.example", "calm.example"]
    assert found[0] == HostFacts("held.example", 0, 0, 0, 0.0, "", NOW)
    assert (found[1].waiting, found[1].failed, found[1].tries, found[1].next_at) == (0, 2, 2, 0.0)
    assert found[1].error in {"timed out", "refused"}
    assert found[2] == HostFacts("once.example", 2, 1, 1, NOW + 50, "gone")
    assert found[3] == HostFacts("calm.example", 2, 0, 0, 0.0, "")
    assert [facts.host for facts in queue_hosts(store, 2)] == ["held.example", "twice.example"]


def test_hosts_with_as_many_failures_are_listed_by_tries_and_then_by_what_waits(store: Store) -> None:
    _give_up(store, "http://b.example/", "gone", tries=2)
    _give_up(store, "http://c.example/", "gone")
    _give_up(store, "http://d.example/", "gone")
    _give_up(store, "http://a.example/", "gone")
    _add(store, "http://c.example/1")
    assert [facts.host for facts in queue_hosts(store, 9)] == ["b.example", "c.example", "a.example", "d.example"]


def test_pages_that_were_given_up_are_tried_again(store: Store) -> None:
    _give_up(store, "http://a.example/", "gone")
    _add(store, "http://b.example/")
    assert retry_failed(store) == 1
    assert retry_failed(store) == 0
    assert {row.url for row in queue_page(store, QueueState.WAITING, "", 9).rows} == {"http://a.example/", "http://b.example/"}


def test_a_task_is_cleared_and_may_begin_anew(store: Store) -> None:
    _add(store, "http://a.example/", task="news")
    _add(store, "http://b.example/")
    store.task_sites.take("news", "a.example", 5, 5, NOW, 1e6)
    assert clear_queue(store, "news") == 1
    assert store.task_sites.totals() == {}
    assert [row.url for row in queue_page(store, None, "", 9).rows] == ["http://b.example/"]
    store.task_sites.take("news", "a.example", 5, 5, NOW, 1e6)
    assert clear_queue(store) == 1
    assert store.task_sites.totals() == {"news": 5}


def test_pages_are_added_ahead_of_others_or_with_a_task(settings: Settings, store: Store) -> None:
    assert add_urls(settings, store, ["a.example", "http://A.example/#x", "b.example"]) == Added(2, 0)
    assert add_urls(settings, store, ["c.example", "b.example"], "forums") == Added(1, 1)
    rows = {row.url: (row.priority, row.task) for row in queue_page(store, None, "", 9).rows}
    assert rows["http://a.example/"] == (Priority.MANUAL, "")
    assert rows["http://c.example/"] == (70, "forums")


def test_nothing_is_added_where_one_page_may_not_be_crawled(settings: Settings, store: Store) -> None:
    with pytest.raises(FetchError, match=r"http://b\.example/logout may not be crawled: the path has 'logout'"):
        add_urls(settings, store, ["a.example", "b.example/logout"])
    assert queue_page(store, None, "", 9).rows == ()


def test_a_child_process_adds_to_the_same_queue(settings: Settings, store: Store) -> None:
    assert crawl_jobs.add_urls(settings, ["a.example"], "") == {"queued": 1, "known": 0}
    assert crawl_jobs.add_urls(settings, ["a.example", "b.example"], "news") == {"queued": 1, "known": 1}
    assert len(queue_page(store, None, "", 9).rows) == 2


def test_a_misspelt_task_is_told_with_the_one_that_is_near(settings: Settings) -> None:
    assert chosen_task(settings, "forums").depth == 3
    with pytest.raises(MissingError, match="'forum'; did you mean 'forums'"):
        chosen_task(settings, "forum")
    with pytest.raises(MissingError, match=r"'x'; a table \[crawl\.tasks\.NAME\]"):
        chosen_task(settings, "x")

"""What each set of seen URLs does, whichever it is."""

from collections.abc import Callable
from hashlib import md5
from pathlib import Path

import pytest

from gatewayfilter.crawl import CrawlContext, CrawlWorker, DigestTree, SeenFilter
from gatewayfilter.crawl.frontier import digest_tree
from gatewayfilter.crawl.frontier.seen_filter import SeenUrls
from gatewayfilter.telemetry import Counters
from tests.crawl.crawl_fakes import FakeFrontier, FakeSink
from tests.crawl.crawl_origin import loopback_settings

type Make = Callable[[Path | None], SeenUrls]


def digests(count: int, salt: str = "") -> list[bytes]:
    return [md5(f"{salt}{number}".encode(), usedforsecurity=False).digest() for number in range(count)]


@pytest.fixture(params=[SeenFilter, DigestTree])
def make(request: pytest.FixtureRequest) -> Make:
    made: Make = request.param
    return made


def test_what_was_added_is_seen_and_hardly_anything_else(make: Make) -> None:
    seen = make(None)
    assert all(map(seen.add, digests(2000)))
    assert not any(map(seen.add, digests(2000)))
    assert all(digest in seen for digest in digests(2000))
    assert sum(digest in seen for digest in digests(2000, "other")) <= 8


def test_it_outlives_its_process_and_damage(make: Make, tmp_path: Path) -> None:
    path = tmp_path / "seen"
    seen = make(path)
    for digest in digests(100):
        seen.add(digest)
    seen.save()
    assert all(digest in make(path) for digest in digests(100))
    path.write_bytes(path.read_bytes()[:-3] + b"bad")
    assert digests(1)[0] not in make(path)


def test_what_can_be_removed_is_gone(make: Make) -> None:
    seen = make(None)
    one, other = digests(2)
    seen.add(one)
    seen.add(other)
    removed = seen.remove(one)
    assert removed == (one not in seen)
    assert removed == isinstance(seen, DigestTree)
    assert other in seen


def test_a_full_tree_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digest_tree, "MAX_ENTRIES", 10)
    tree = DigestTree()
    for digest in digests(15):
        tree.add(digest)
    assert len(tree) == 5


def test_the_worker_takes_either(make: Make) -> None:
    assert CrawlWorker(CrawlContext(FakeFrontier(), FakeSink(), loopback_settings(), Counters(), seen=make(None)))

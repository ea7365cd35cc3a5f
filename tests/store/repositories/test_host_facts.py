"""Facts about hosts, over every database."""

from gatewayfilter.interfaces import CrawlRequest, HostFacts, Priority
from gatewayfilter.model import Classification
from gatewayfilter.store import Store
from gatewayfilter.store.repositories import host_facts

URL = "http://shop.example/a"
NOW = 1_000_000.0


def judged(store: Store, path: str, category: str, digest: bytes, at: float = NOW, *, counts: bool = True) -> None:
    verdict = Classification(category, 1.0, 20.0, text_digest=digest * 16)
    store.verdicts.record(f"http://shop.example{path}", verdict, at, counts=counts)


def test_the_page_itself_and_its_text_are_left_out(store: Store) -> None:
    assert store.host_facts.facts_of(URL, "shop.example", b"") == HostFacts({}, 0, None, linked=False)
    judged(store, "/a", "gambling", b"a")  # the page itself
    judged(store, "/copy", "gambling", b"o")  # with the same text as the page
    judged(store, "/b", "gambling", b"b", NOW - 500)
    judged(store, "/b2", "gambling", b"b")  # the same text again
    judged(store, "/c", "", b"c")
    judged(store, "/passed", "", b"d", counts=False)  # a client may have forged it
    store.verdicts.record("http://other.example/", Classification("", 0.0, 1.0, text_digest=b"e" * 16), NOW, counts=True)
    assert store.host_facts.facts_of(URL, "shop.example", b"o" * 16) == HostFacts({"gambling": 1}, 1, NOW - 500, linked=False)


def test_a_link_of_a_harmful_page_is_told_from_a_visit(store: Store) -> None:
    visited, crawled = "http://shop.example/v", "http://shop.example/task"
    store.frontier.add([CrawlRequest(URL, Priority.LINK), CrawlRequest(visited), CrawlRequest(crawled, 100, 0.0, "news")], NOW)
    linked = [store.host_facts.facts_of(url, "shop.example", b"").linked for url in (URL, visited, crawled)]
    assert linked == [True, False, False]


def test_reading_is_bounded(store: Store) -> None:
    pages = {f"http://shop.example/{number}": number for number in range(host_facts.MOST_READ + 50)}
    verdicts = {url: Classification("", 1.0, 20.0, text_digest=number.to_bytes(16)) for url, number in pages.items()}
    store.verdicts.record_all(verdicts, NOW, list(verdicts))
    assert store.host_facts.facts_of("http://shop.example/x", "shop.example", b"x" * 16).harmless == host_facts.MOST_READ

from gatewayfilter.interfaces import CrawlRequest, Priority
from gatewayfilter.learn import forget_surplus, recheck_offers, rejudge_offers
from gatewayfilter.model import ChangeKind, LearnedEntry, ListAction
from gatewayfilter.store import Store


def entry(name: str, action: ListAction, expires_at: float) -> LearnedEntry:
    return LearnedEntry(f"{name}.example/", action, "", f"http://{name}.example/", "", 0.0, expires_at)


BLOCK_1, BLOCK_5 = entry("one", ListAction.BLOCK, 1.0), entry("five", ListAction.BLOCK, 5.0)
ALLOW_2, ALLOW_6 = entry("two", ListAction.ALLOW, 2.0), entry("six", ListAction.ALLOW, 6.0)


def test_expired_entries_leave_and_blocked_pages_are_offered(store: Store) -> None:
    store.lists.put_learned([BLOCK_1, ALLOW_2, BLOCK_5, ALLOW_6])
    seq = store.feed.last_seq()
    assert recheck_offers(store.lists, 4.0) == [CrawlRequest(BLOCK_1.url, Priority.RECHECK)]
    assert {found.key for found in store.lists.learned()} == {BLOCK_5.key, ALLOW_6.key}
    changes = [(change.kind, change.learned) for change in store.feed.read(seq)]
    assert changes == [(ChangeKind.LEARNED_REMOVED, BLOCK_1), (ChangeKind.LEARNED_REMOVED, ALLOW_2)]
    assert recheck_offers(store.lists, 4.0) == []


def test_no_more_are_taken_than_asked_for(store: Store) -> None:
    store.lists.put_learned([BLOCK_1, BLOCK_5])
    assert recheck_offers(store.lists, 10.0, limit=1) == [CrawlRequest(BLOCK_1.url, Priority.RECHECK)]
    assert recheck_offers(store.lists, 10.0, limit=1) == [CrawlRequest(BLOCK_5.url, Priority.RECHECK)]


def test_nothing_expired_changes_nothing(store: Store) -> None:
    store.lists.put_learned([BLOCK_5])
    seq = store.feed.last_seq()
    assert recheck_offers(store.lists, 4.0) == []
    assert store.feed.last_seq() == seq


def test_other_words_judge_blocked_pages_anew(store: Store) -> None:
    host = LearnedEntry(".host.example", ListAction.BLOCK, "", "http://host.example/", "", 0.0, 9.0)
    store.lists.put_learned([BLOCK_1, BLOCK_5, ALLOW_6, host])
    seq = store.feed.last_seq()
    assert {offer.url for offer in rejudge_offers(store.lists, 10)} == {BLOCK_1.url, BLOCK_5.url}
    assert len(rejudge_offers(store.lists, 1)) == 1
    assert store.feed.last_seq() == seq


def test_entries_beyond_the_bound_leave_through_the_feed(store: Store) -> None:
    store.lists.put_learned([BLOCK_1, ALLOW_2, BLOCK_5, ALLOW_6])
    seq = store.feed.last_seq()
    assert forget_surplus(store.lists, 1, limit=2) == 2
    assert forget_surplus(store.lists, 1, limit=2) == 1
    assert forget_surplus(store.lists, 1, limit=2) == 0
    assert {found.key for found in store.lists.learned()} == {ALLOW_6.key}
    assert [change.kind for change in store.feed.read(seq)] == [ChangeKind.LEARNED_REMOVED] * 3

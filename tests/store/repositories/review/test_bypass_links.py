from concurrent.futures import ThreadPoolExecutor

import pytest

from gatewayfilter.interfaces import BypassLink, UnblockRequest
from gatewayfilter.model import APPROVED, EntryKind, ListAction, ManualRule
from gatewayfilter.store import Store
from gatewayfilter.store.repositories.review.bypass_links import VISIT_S


def link(*, once: bool = False, until: float = 1000.0, created_at: float = 1.0) -> BypassLink:
    return BypassLink("http://a.example/", EntryKind.DOMAIN, ".a.example", "client:kim", until, once, created_at)


def test_an_opened_link_makes_its_rule(store: Store) -> None:
    made = store.bypass.add(link())
    assert store.unblock.redeem([made.link_id], 10.0) == 1
    (rule,) = store.lists.rules()
    assert (rule.pattern, rule.scope, rule.expires_at, rule.comment) == (".a.example", "client:kim", 1000.0, "link 1")
    assert store.unblock.redeem([made.link_id], 11.0) == 1
    assert len(store.lists.rules()) == 1


@pytest.mark.parametrize("now", [1000.0, 2000.0])
def test_after_its_end_a_link_does_nothing(now: float, store: Store) -> None:
    made = store.bypass.add(link())
    assert store.unblock.redeem([made.link_id, 99], now) == 0
    assert store.lists.rules() == []


def test_a_link_for_one_visit_is_opened_once_by_any_number_of_workers(store: Store) -> None:
    made = store.bypass.add(link(once=True))
    with ThreadPoolExecutor(8) as pool:
        opened = list(pool.map(lambda _: store.unblock.redeem([made.link_id], 10.0), range(16)))
    assert sum(opened) == 1
    (rule,) = store.lists.rules()
    assert rule.expires_at == 10.0 + VISIT_S


def test_a_revoked_link_takes_its_rule_along(store: Store) -> None:
    made = store.bypass.add(link())
    store.unblock.redeem([made.link_id], 10.0)
    revoked = store.bypass.revoke(made.link_id, 20.0)
    assert revoked is not None
    assert revoked.revoked_at == 20.0
    assert store.lists.rules() == []
    assert store.unblock.redeem([made.link_id], 21.0) == 0
    assert store.bypass.revoke(99, 20.0) is None


def test_a_rule_that_others_need_too_ends_with_the_last_of_them(store: Store) -> None:
    asked = [UnblockRequest(f"http://a.example/{n}", f"10.0.0.{n}", "blacklist", "l", "r", "gambling", "", 1.0) for n in range(2)]
    assert store.unblock.ask(asked) == 2
    approved = ManualRule(0, ListAction.ALLOW, EntryKind.DOMAIN, ".a.example", "", APPROVED, 500.0, scope="client:kim")
    store.unblock.approve([1], [approved], scope="client:kim", until=500.0, word="", now=2.0)
    first, second = store.bypass.add(link()), store.bypass.add(link(until=800.0))

    def ends() -> list[float | None]:
        return [rule.expires_at for rule in store.lists.rules()]

    assert store.unblock.redeem([first.link_id, second.link_id], 10.0) == 2
    assert ends() == [1000.0]
    store.unblock.deny([1], word="", now=11.0)
    assert ends() == [1000.0], "of the link"
    store.unblock.approve([1], [approved], scope="client:kim", until=500.0, word="", now=12.0)
    for revoked, left in ((first, [800.0]), (second, [500.0])):
        store.bypass.revoke(revoked.link_id, 20.0)
        assert ends() == left
    store.unblock.deny([1], word="", now=21.0)
    assert ends() == []


def test_links_are_forgotten_a_month_after_their_end(store: Store) -> None:
    store.bypass.add(link(until=2.0))
    store.bypass.add(link(created_at=40 * 86_400.0, until=41 * 86_400.0))
    assert [found.link_id for found in store.bypass.links()] == [2]
    assert [found.link_id for found in store.unblock.changes(-1).links] == [2]

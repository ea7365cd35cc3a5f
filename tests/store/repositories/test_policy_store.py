"""Policy items in the database: consistent, in the feed, with the manual rules of what is removed."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

import pytest
from sqlalchemy import func, select, update

from gatewayfilter.engine.state.overlay import Overlay
from gatewayfilter.errors import PolicyError
from gatewayfilter.model import (
    CategoryAction,
    ChangeKind,
    Client,
    EntryKind,
    Group,
    ListAction,
    Pause,
    PauseScope,
    Policy,
    PolicyItem,
    PolicySet,
    Schedule,
    ScheduleEffect,
    Window,
    parse_matcher,
    to_record,
)
from gatewayfilter.store import Store
from gatewayfilter.store.sql.database import Area
from gatewayfilter.store.sql.schema import LIST_CHANGES, POLICY_ITEMS

NOW = 100.0
KIDS = Group("kids", "strict")
STRICT = Policy("strict", {"ut1": False}, {"social": CategoryAction.BLOCK}, block_all=False)
BEDTIME = Schedule("bedtime", "strict", ScheduleEffect.BLOCK_ALL, (Window(1260, 360),), "Europe/Berlin")
ANNA = Client("anna", (parse_matcher("10.0.0.2"), parse_matcher("user:anna")), "kids", note="tablet")
PAUSE = Pause(PauseScope.CLIENT, "anna", NOW + 60)
ALL: tuple[PolicyItem, ...] = (KIDS, STRICT, BEDTIME, ANNA, PAUSE)


def put(store: Store, *items: PolicyItem, now: float = NOW) -> PolicySet:
    return store.policies.change(lambda _: [(item, True) for item in items], now)


def remove(store: Store, *items: PolicyItem, now: float = NOW) -> PolicySet:
    return store.policies.change(lambda _: [(item, False) for item in items], now)


def followed(store: Store) -> PolicySet:
    """What a worker knows that has read the feed from the beginning."""
    return Overlay.over((), 0).changed(store.feed.read(0)).policies


def test_items_come_out_as_they_went_in(store: Store) -> None:
    assert put(store, *ALL) == PolicySet.of(ALL)
    assert store.policies.read() == followed(store) == PolicySet.of(ALL)
    assert [change.kind for change in store.feed.read(0)] == [ChangeKind.POLICY_PUT] * 5


def test_an_item_is_replaced_by_its_name(store: Store) -> None:
    put(store, *ALL)
    changed = put(store, Client("anna", (parse_matcher("10.0.0.3"),)))
    assert changed.clients["anna"].group == "default"
    assert store.policies.read() == followed(store) == changed


def test_what_is_inconsistent_is_not_written(store: Store) -> None:
    put(store, *ALL)
    seq = store.feed.last_seq()
    with pytest.raises(PolicyError, match=r"10\.0\.0\.2 belongs to the client anna"):
        put(store, Client("bert", (parse_matcher("10.0.0.9"), parse_matcher("10.0.0.2"))))
    with pytest.raises(PolicyError, match="no policy 'strict'"):
        remove(store, STRICT)
    assert (store.policies.read(), store.feed.last_seq()) == (PolicySet.of(ALL), seq)


def test_the_edit_sees_what_others_wrote(store: Store) -> None:
    put(store, *ALL)

    def rename(policies: PolicySet) -> Sequence[tuple[PolicyItem, bool]]:
        return [
            (policies.clients["anna"], False),
            (Client("ann", policies.clients["anna"].matchers, "kids"), True),
            (PAUSE, False),
        ]

    assert set(store.policies.change(rename, NOW).clients) == {"ann"}


def test_pauses_that_have_ended_are_forgotten(store: Store) -> None:
    put(store, *ALL)
    assert put(store, Group("x"), now=NOW + 59).pauses == {"client:anna": PAUSE}
    assert put(store, Group("y"), now=NOW + 60).pauses == {}
    assert store.policies.read().pauses == followed(store).pauses == {}
    longer = Pause(PauseScope.CLIENT, "anna", NOW + 500)
    put(store, PAUSE)
    assert put(store, longer, now=NOW + 100).pauses == {"client:anna": longer}
    assert followed(store).pauses == {"client:anna": longer}


def test_rules_go_with_their_client(store: Store) -> None:
    put(store, *ALL)
    add = store.lists.add_rule
    everybody = add(ListAction.BLOCK, EntryKind.DOMAIN, ".a.example")
    own = add(ListAction.ALLOW, EntryKind.DOMAIN, ".a.example", scope="client:anna")
    group = add(ListAction.BLOCK, EntryKind.DOMAIN, ".a.example", scope="group:kids")
    assert len({everybody.rule_id, own.rule_id, group.rule_id}) == 3
    assert [rule.scope for rule in store.lists.rules()] == ["", "client:anna", "group:kids"]
    remove(store, ANNA, PAUSE)
    assert store.lists.rules() == [everybody, group]
    remove(store, KIDS)
    assert store.lists.rules() == [everybody]
    rules = Overlay.over((), 0).changed(store.feed.read(0)).rules
    assert (len(rules), dict(rules.scoped)) == (1, {})


def test_a_renamed_group_keeps_clients_rules_and_pause(store: Store) -> None:
    put(store, *ALL, Pause(PauseScope.GROUP, "kids", NOW + 500))
    store.lists.add_rule(ListAction.BLOCK, EntryKind.DOMAIN, ".a.example", scope="group:kids")
    members = {client.name for client in store.policies.read().clients.values() if client.group == "kids"}
    assert members
    after = store.policies.rename_group("kids", "children")
    assert after == store.policies.read() == followed(store)
    assert {client.name for client in after.clients.values() if client.group == "children"} == members
    assert ("kids" in after.groups, after.groups["children"].policy) == (False, KIDS.policy)
    assert "group:children" in after.pauses
    assert [rule.scope for rule in store.lists.rules()] == ["group:children"]
    for name, renamed in ("default", "x"), ("nobody", "x"), ("children", "default"), ("children", "children"):
        with pytest.raises(PolicyError):
            store.policies.rename_group(name, renamed)
    assert store.policies.read() == after


def test_a_renamed_client_keeps_group_rules_and_pause(store: Store) -> None:
    store.policies.change(lambda _: [(item, True) for item in ALL], NOW)
    store.lists.add_rule(ListAction.BLOCK, EntryKind.DOMAIN, ".bad.test", scope="client:anna")
    found = store.policies.rename_client("anna", "anne")
    assert found == store.policies.read()
    assert set(found.clients) == {"anne"}
    assert found.clients["anne"].group == "kids"
    assert list(found.pauses) == ["client:anne"]
    assert [rule.scope for rule in store.lists.rules()] == ["client:anne"]


def test_a_set_is_kept_until_the_feed_goes_on(open_store: Callable[[], Store]) -> None:
    one, other = open_store(), open_store()
    put(one, *ALL)
    kept = one.policies.read()
    assert one.policies.read() is kept
    remove(other, PAUSE)
    assert one.policies.read() == PolicySet.of(ALL[:-1])


def test_a_change_that_is_taken_back_is_not_kept(store: Store) -> None:
    put(store, *ALL)
    with suppress(KeyError), store.changing():
        put(store, Group("gone"))
        assert "gone" in store.policies.read().groups
        raise KeyError
    put(store, Group("new"))  # its step may have the number of the one that was taken back
    assert set(store.policies.read().groups) == {"kids", "new"}


def test_another_feed_with_as_many_steps_is_read(store: Store) -> None:
    """As of a database server that was restored from a backup, and changed since."""
    put(store, *ALL)
    store.policies.read()
    with store._database.write(Area.LISTS) as connection:
        last = connection.scalar(select(func.max(LIST_CHANGES.c.seq)))
        longer = to_record(replace(PAUSE, until=NOW + 900))
        connection.execute(update(LIST_CHANGES).where(LIST_CHANGES.c.seq == last).values(payload=longer))
        connection.execute(update(POLICY_ITEMS).where(POLICY_ITEMS.c.kind == "pause").values(record=longer))
    assert store.policies.read().pauses[PAUSE.name].until == NOW + 900

"""Restored rows as model objects: what contradicts itself is refused."""

import pytest

from gatewayfilter.errors import BackupError
from gatewayfilter.model import ChangeKind, Group, to_record
from gatewayfilter.store.backup.feed_steps import entry_of, in_feed, step
from gatewayfilter.store.sql.schema import ACCOUNTS, LEARNED_ENTRIES, MANUAL_RULES, POLICY_ITEMS

KIDS = Group("kids", "strict")
ROW = {"kind": "group", "name": "kids", "record": to_record(KIDS)}


def test_a_policy_item_is_that_of_its_row() -> None:
    assert entry_of(POLICY_ITEMS, ROW) == KIDS
    assert step(POLICY_ITEMS, ROW, put=True) == (ChangeKind.POLICY_PUT, KIDS)
    assert step(POLICY_ITEMS, ROW, put=False) == (ChangeKind.POLICY_REMOVED, KIDS)


@pytest.mark.parametrize("wrong", [{"name": "others"}, {"kind": "client"}, {"record": {}}])
def test_a_policy_item_of_another_name_or_kind_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(BackupError, match="policy_items"):
        entry_of(POLICY_ITEMS, {**ROW, **wrong})


def test_a_learned_entry_of_another_digest_is_refused() -> None:
    with pytest.raises(BackupError):
        entry_of(LEARNED_ENTRIES, {"key": "a.test/", "digest": b"x" * 16})


def test_lists_and_policies_stand_in_the_feed() -> None:
    assert [in_feed(table) for table in (MANUAL_RULES, LEARNED_ENTRIES, POLICY_ITEMS, ACCOUNTS)] == [True, True, True, False]

"""Notifications of the operator, and how far each channel is."""

import math

import pytest

from gatewayfilter.interfaces import ChannelState
from gatewayfilter.store import Store
from gatewayfilter.store.repositories.review import notifications as module


def test_a_thing_is_notified_of_once(store: Store) -> None:
    assert store.notifications.add("device", "kim", 5.0, {"client": "kim"}) is True
    assert store.notifications.add("device", "kim", 6.0, {}) is False
    assert store.notifications.add("request", "kim", 7.0, {})
    first, second = store.notifications.after(0, 9)
    assert (first.event, first.at, first.facts, second.event) == ("device", 5.0, {"client": "kim"}, "request")
    assert store.notifications.after(0, 1) == [first]
    assert store.notifications.after(first.number, 9) == [second]


def test_the_newest_are_kept(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_KEPT", 3)
    for number in range(5):
        store.notifications.add("device", str(number), number, {"number": number})
    assert [one.facts["number"] for one in store.notifications.after(0, 9)] == [2, 3, 4]


@pytest.mark.parametrize(("since", "told"), [(math.inf, []), (2.0, [2.0, 3.0]), (1.5, [2.0, 3.0]), (0.0, [1.0, 2.0, 3.0])])
def test_a_new_channel_begins_at_a_time(since: float, told: list[float], store: Store) -> None:
    empty = store.notifications.channel("before", since)
    assert empty == ChannelState(0)
    for at in (1.0, 2.0, 3.0):
        store.notifications.add("device", str(at), at, {})
    state = store.notifications.channel("mail", since)
    assert [one.at for one in store.notifications.after(state.last_id, 9)] == told
    store.notifications.add("device", "later", 9.0, {})
    assert store.notifications.channel("mail") == state, "it has begun"


def test_the_state_of_a_channel_is_kept(store: Store) -> None:
    store.notifications.channel("mail")
    store.notifications.channel("web")
    state = ChannelState(3, 4.0, 5, 6.0, 7.0, "no route")
    store.notifications.put_channel("mail", state)
    store.notifications.put_channel("other", state)
    assert store.notifications.channel("mail") == state
    assert store.notifications.channels(["mail", "web", "other"]) == {"mail": state, "web": ChannelState(0)}
    assert store.notifications.channels([]) == {}

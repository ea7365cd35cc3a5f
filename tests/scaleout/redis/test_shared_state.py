"""The shared state in Redis: changes in order, equal values once, and a stream that was trimmed or lost is noticed."""

import pytest

from gatewayfilter.scaleout.redis.shared_state import RedisSharedState
from gatewayfilter.scaleout.sync.synchronizer import StreamPlace
from tests.scaleout.redis.redis_servers import Server, why_not
from tests.scaleout.redis.shared_state import connection_to

pytestmark = [pytest.mark.services, pytest.mark.skipif(bool(why_not()), reason=why_not())]


def test_a_reader_goes_on_from_its_place_or_compares_all(redis: Server) -> None:
    state = RedisSharedState(connection_to(redis), "s", kept=100)
    assert state.after(StreamPlace()) == (StreamPlace("", 0), frozenset())
    state.put({"a": b"1", "b": b"\x00\xff"})
    begin, fields = state.after(StreamPlace())
    assert fields is None  # another epoch: all is compared
    assert begin.number == 2
    assert state.all() == state.values(["a", "b", "c"]) == {"a": b"1", "b": b"\x00\xff"}
    assert state.after(begin) == (begin, frozenset())
    state.put({"a": b"1", "b": b"2"})  # one of them changes
    place, fields = state.after(begin)
    assert (place.number, fields) == (3, frozenset({"b"}))
    state.put({f"x{number}": b"1" for number in range(1_500)})
    assert state.after(place)[1] is None  # trimmed
    late = StreamPlace(place.epoch, 1_450)
    place, fields = state.after(late)
    assert (place.number, len(fields or ())) == (1_503, 53)
    assert state.after(StreamPlace(place.epoch, 9_999))[1] is None  # a fail-over lost what was read
    assert RedisSharedState(connection_to(redis), "other").all() == {}

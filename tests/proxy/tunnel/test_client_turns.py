"""Who is served where many sockets are ready: each client in turn, origins always, and nothing is lost."""

import pytest

from gatewayfilter.proxy.tunnel.client_turns import CROWD, ClientTurns

READ, WRITE, GONE = 1, 4, 16


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    time = [100.0]
    monkeypatch.setattr("gatewayfilter.proxy.tunnel.client_turns.monotonic", lambda: time[0])
    return time


def turns_of(**clients: range) -> ClientTurns:
    turns = ClientTurns()
    for client, descriptors in clients.items():
        for descriptor in descriptors:
            turns.own(descriptor, client)
    return turns


def test_a_quiet_client_comes_before_the_rest_of_a_busy_one(now: list[float]) -> None:
    turns = turns_of(busy=range(1000), quiet=range(1000, 1002))
    happened = [(descriptor, READ) for descriptor in range(1002)]
    taken = turns.take(happened)
    assert len(taken) == 30, "15 ms of half a millisecond each"
    assert taken[:3] == [(0, READ), (1000, READ), (1, READ)]
    assert {1000, 1001} <= {descriptor for descriptor, _ in taken}
    assert turns.behind_s == pytest.approx(972 * 0.0005)
    turns.rest()
    assert turns.behind_s == 0.0


def test_origins_writes_and_ends_are_never_put_off(now: list[float]) -> None:
    turns = turns_of(busy=range(200))
    others = [(500, READ), (3, WRITE), (4, READ | GONE)]
    taken = turns.take([(descriptor, READ) for descriptor in range(10, 200)] + others)
    assert set(others) <= set(taken)


def test_every_client_gets_its_turn_where_there_are_more_than_a_turn_serves(now: list[float]) -> None:
    """What was served is ready again behind the others, as epoll reports it."""
    turns = turns_of(**{f"client{number}": range(number * 10, number * 10 + 10) for number in range(100)})
    queue = [(descriptor, READ) for descriptor in range(1000)]
    served: set[int] = set()
    for _ in range(40):
        taken = turns.take(queue)
        assert len({descriptor // 10 for descriptor, _ in taken}) == len(taken)
        served.update(descriptor for descriptor, _ in taken)
        queue = [one for one in queue if one not in taken] + taken
    assert len(served) == 1000


def test_turns_are_as_long_as_the_work_takes(now: list[float]) -> None:
    turns = turns_of(busy=range(1000))
    happened = [(descriptor, READ) for descriptor in range(1000)]
    for _ in range(50):
        now[0] += len(turns.take(happened)) * 0.01
    assert len(turns.take(happened)) == 4
    assert turns.behind_s == pytest.approx(996 * 0.01, rel=0.05)
    for _ in range(200):
        now[0] += len(turns.take(happened)) * 0.00001
    assert len(turns.take(happened)) == 64


def test_a_descriptor_belongs_to_its_newest_connection(now: list[float]) -> None:
    turns = ClientTurns()
    before = turns.own(7, "busy")
    after = turns.own(7, "busy")
    turns.disown(7, before)
    happened = [(7, READ)] * (CROWD + 100)
    assert len(turns.take(happened)) < len(happened)
    turns.disown(7, None)
    turns.disown(7, after)
    assert turns.take(happened) == happened


def test_a_crowd_that_is_always_ready_keeps_no_client_from_its_turn(now: list[float]) -> None:
    """As epoll reports them: a socket that is ready again before the next poll keeps its place at the head."""
    turns = turns_of(**{f"endless{number}": range(number * 2, number * 2 + 2) for number in range(200)}, quiet=range(900, 903))
    happened = [(descriptor, READ) for descriptor in [*range(400), *range(900, 903)]]
    served: list[int] = []
    for _ in range(60):
        served += [descriptor for descriptor, _ in turns.take(happened)]
    assert set(served) == {descriptor for descriptor, _ in happened}
    assert served.index(900) < 210, "after one turn of each client"


def test_what_one_client_has_ready_makes_no_others_wait(now: list[float]) -> None:
    turns = turns_of(busy=range(1000), quiet=range(1000, 1002))
    turns.take([(descriptor, READ) for descriptor in range(1002)])
    assert turns.behind_s > 0
    assert turns.spread_s == 0
    many = turns_of(**{f"client{number}": range(number * 10, number * 10 + 10) for number in range(100)})
    many.take([(descriptor, READ) for descriptor in range(1000)])
    assert many.spread_s == pytest.approx((600 - 30) * 0.0005)


def test_who_waits_longest_comes_first_and_who_is_new_last(now: list[float]) -> None:
    turns = turns_of(**{name: range(place, place + 1) for place, name in enumerate("abcdefg")})
    turns._each_s = 0.005  # four in a turn

    def served(*descriptors: int) -> list[int]:
        return [descriptor for descriptor, _ in turns.take([(descriptor, READ) for descriptor in descriptors])]

    assert served(0, 1, 2, 3, 4, 5) == [0, 1, 2, 3]
    assert served(6, 0, 1, 2, 3, 4, 5) == [4, 5, 0, 1]
    assert served(6, 0, 1, 2, 3, 4, 5) == [2, 3, 6, 0]


def test_the_time_of_a_turn_counts_and_that_of_a_rest_does_not(now: list[float]) -> None:
    turns = turns_of(one=range(10))
    turns.take([(500, READ)])
    now[0] += 0.01
    turns.take([(500, READ)])
    assert turns._each_s == pytest.approx(0.0005 + 0.2 * (0.01 - 0.0005))
    known = turns._each_s
    turns.rest()
    now[0] += 100.0
    turns.take([(500, READ)])
    assert turns._each_s == known

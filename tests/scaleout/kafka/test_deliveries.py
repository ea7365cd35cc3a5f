from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.scaleout.kafka.deliveries import CAREFUL, GIVE_UP, Deliveries


def commit(found: Deliveries) -> dict[int, tuple[int, str]]:
    moved = found.to_commit()
    found.committed(moved)
    return moved


def test_an_offset_is_committed_when_all_before_it_are_done() -> None:
    found = Deliveries(4)
    assert found.begin(0, 10, "") == "1"
    for offset in (10, 11, 14):  # between them the end of a transaction
        assert found.take(0, offset)
    assert found.room == 1
    found.done(0, 11)
    assert commit(found) == {}
    found.done(0, 10)
    assert found.to_commit() == {0: (14, "0")}
    assert commit(found) == {0: (14, "0")}  # the first time failed
    assert commit(found) == {}
    found.done(0, 14)
    assert commit(found) == {0: (15, "0")}


def test_another_readers_partition_is_not_committed() -> None:
    found = Deliveries(4)
    found.begin(3, 0, "0")
    found.take(3, 0)
    found.forget(3)
    found.done(3, 0)
    assert (commit(found), found.room, found.knows(3)) == ({}, 4, False)


@settings(max_examples=30)
@given(poison=st.integers(0, 30), window=st.integers(1, 8))
def test_a_message_that_kills_its_reader_is_given_up(poison: int, window: int) -> None:
    committed, note, stored, given_up = 0, "", set[int](), list[int]()
    for _ in range(4 * GIVE_UP):  # each time a new process
        found, offset, work, dead = Deliveries(window), committed, list[int](), False
        note = found.begin(0, offset, note)
        while (offset < 40 or work) and not dead:
            while found.room > 0 and offset < 40:
                if found.take(0, offset):
                    work.append(offset)
                    dead = dead or offset == poison
                else:
                    given_up.append(offset)
                    found.done(0, offset)
                offset += 1
            if dead:
                break
            done = work.pop()
            stored.add(done)
            found.done(0, done)
            for committed, note in commit(found).values():  # noqa: B007  they are read by the next process
                pass
        if not dead:
            break
    assert given_up == [poison]
    assert stored == set(range(40)) - {poison}
    assert CAREFUL < GIVE_UP

"""Followers of the decision log outside of the database."""

from gatewayfilter.model import LogRecord
from gatewayfilter.store import Store


def test_a_follower_reads_where_it_was(store: Store) -> None:
    followers = store.log_followers
    assert (followers.position("csv"), followers.bounds()) == (None, (0, 0))
    store.log.write([LogRecord(float(n), "192.0.2.1", "GET", f"http://{n}/", "document", "allow", "unknown") for n in range(5)])
    assert followers.bounds() == (1, 5)
    assert store.log.newest() == 5
    assert [(number, one.at) for number, one in followers.after(1, 4, 9)] == [(2, 1.0), (3, 2.0), (4, 3.0)]
    assert [number for number, _ in followers.after(0, 5, 2)] == [1, 2]
    followers.move("csv", 0)
    assert followers.position("csv") == 0
    followers.move("csv", 3)
    followers.move("other", 4)
    assert (followers.position("csv"), followers.position("other")) == (3, 4)
    store.log.purge(2.0)
    assert followers.bounds() == (3, 5)

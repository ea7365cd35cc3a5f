"""The chain of deltas is short, small, and leads from where a follower is to the newest snapshot."""

from gatewayfilter.fleet.deltas.chain import MOST_LINKS, DeltaLink, extended, links_from


def link(number: int, size: int = 10) -> DeltaLink:
    return DeltaLink(f"{number:064x}", f"{number + 1000:064x}", size)


def test_a_chain_keeps_the_newest_deltas() -> None:
    links: tuple[DeltaLink, ...] = ()
    for number in range(20):
        links = extended(links, link(number), 1_000_000)
    assert links == tuple(link(number) for number in range(20 - MOST_LINKS, 20))


def test_deltas_together_are_half_of_the_snapshot_at_most() -> None:
    links = extended((link(1, 300), link(2, 300)), link(3, 100), 1_000)
    assert links == (link(2, 300), link(3, 100))
    assert extended(links, link(4, 450), 1_000) == (link(4, 450),)
    assert extended((link(1, 250),), link(2, 250), 1_000) == (link(1, 250), link(2, 250))
    assert extended((link(1, 251),), link(2, 250), 1_000) == (link(2, 250),)


def test_behind_a_delta_that_is_left_out_none_is_kept() -> None:
    assert extended((link(1, 10), link(2, 900)), link(3, 100), 1_000) == (link(3, 100),)


def test_without_a_delta_the_chain_begins_anew() -> None:
    assert extended((link(1), link(2)), None, 1_000) == ()


def test_a_follower_takes_the_deltas_behind_its_snapshot() -> None:
    links = (link(1), link(2), link(3))
    assert links_from(links, link(2).older) == links[1:]
    assert links_from(links, link(1).older) == links
    assert links_from(links, f"{9:064x}") == links_from(links, "") == links_from((), link(1).older) == ()

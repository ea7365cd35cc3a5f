"""The trial of rules on synthetic sites, its names and its end: `gatewayfilter.engine.adblock.breadth.network_breadth`."""

import pytest

from gatewayfilter.engine.adblock.breadth import network_breadth
from gatewayfilter.engine.adblock.breadth.probe_sites import MANY, SITES, Sites, fixed_sites
from gatewayfilter.engine.adblock.compiler import AdblockBuilder


def trial(answers: str) -> tuple[bool, int]:
    """Returns whether the rule is too broad, and how many sites it was tried on."""
    left = iter(answers)
    found = network_breadth._many(answer == "+" for answer in left)
    return found, len(answers) - len(list(left))


def test_a_trial_ends_where_it_is_decided() -> None:
    assert (SITES, MANY) == (10, 4)
    for answers, too_broad, tried in (
        ("++++++++++", True, 4), ("+-+-+-+---", True, 7), ("---+++++++", True, 7), ("---+------", False, 8),
        ("-----+++++", False, 4), ("----++++++", False, 4), ("+------+++", True, 10), ("+-------++", False, 8),
        ("+++-------", False, 10), ("+++------+", True, 10), ("---+---+++", True, 10), ("", False, 0), ("+++", False, 3),
    ):  # fmt: skip
        assert trial(answers) == (too_broad, tried), answers


def test_each_change_of_a_rule_changes_the_names_that_it_is_tried_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a rule could leave them out."""
    seeds: list[int] = []

    class Noted(Sites):
        def __init__(self, seed: int, suffixes: tuple[str, ...], page_suffixes: tuple[str, ...] = ()) -> None:
            seeds.append(seed)
            super().__init__(seed, suffixes, page_suffixes)

    monkeypatch.setattr(network_breadth, "Sites", Noted)
    first = []
    for rules in (["*$domain=~a.test"], ["*$domain=~b.test"], ["*$domain=~a.test", "*$font"], ["*$domain=~a.test"]):
        seeds.clear()
        assert AdblockBuilder().add_list(0, rules).refused
        first.append(seeds[0])
    assert first[0] == first[3]
    assert len({*first}) == 3


def test_one_site_of_a_suffix_is_not_all_of_it() -> None:
    for suffix in ("net", "org", "co.uk"):
        host = next(iter(fixed_sites(suffix)))[0].request.url.host.removesuffix(f".{suffix}").rpartition(".")[2]
        some_letters = "[a-z]".join(host[::2])
        every_site, one_site = (
            rf"/^https?:\/\/([a-z]+\.)?{name}[a-z0-9-]*\.{suffix.replace('.', '[.]')}\//" for name in ("[a-z]+", some_letters)
        )
        assert AdblockBuilder().add_list(0, [every_site]).refused == 1
        assert AdblockBuilder().add_list(0, [one_site]).refused == 0, one_site


def test_a_rule_that_names_a_page_beside_an_expression_for_all_is_refused() -> None:
    for line, refused in (
        ("*$script,domain=a.test|/./", 1),
        ("*$script,domain=a.test|/^b[.]test$/", 0),
        ("*$script,domain=a.test", 0),
    ):
        assert AdblockBuilder().add_list(0, [line]).refused == refused, line

"""Whom a text stands for, and makers of devices that are remembered."""

import pytest

from gatewayfilter.errors import PolicyError
from gatewayfilter.model import Client, PolicySet, parse_matcher
from gatewayfilter.use_cases import network_facts
from gatewayfilter.use_cases.network_facts import identity_of
from gatewayfilter.use_cases.people import client_list
from gatewayfilter.use_cases.people.client_list import Makers

MAC = "02:00:00:00:00:01"


def client(name: str, *matchers: str) -> Client:
    return Client(name, tuple(map(parse_matcher, matchers)))


POLICIES = PolicySet.of(
    [
        client("by-user", "user:anna"),
        client("by-address", "10.0.0.7", "10.0.2.0/24"),
        client("by-network", "10.0.1.0/30"),
        client("taken", "10.0.1.1"),
        client("by-mac", MAC),
        client("far", "02:00:00:00:00:02"),
        client("bare"),
    ]
)
NEIGHBOURS = {"10.0.0.8": "02:00:00:00:00:09", "10.0.0.9": MAC}


@pytest.mark.parametrize(
    ("text", "address", "user"),
    [
        ("user:ben", "", "ben"),
        ("::ffff:10.0.0.1", "10.0.0.1", ""),
        ("by-user", "", "anna"),
        ("by-address", "10.0.0.7", ""),
        ("by-network", "10.0.1.2", ""),
        ("by-mac", "10.0.0.9", ""),
    ],
)
def test_whom_a_text_stands_for(text: str, address: str, user: str) -> None:
    assert identity_of(text, POLICIES, NEIGHBOURS) == network_facts.ClientIdentity(address, user)


@pytest.mark.parametrize(
    ("text", "sentence"), [("nobody", "neither an address"), ("far", "no address now"), ("bare", "no address now")]
)
def test_who_is_nowhere(text: str, sentence: str) -> None:
    with pytest.raises(PolicyError, match=sentence):
        identity_of(text, POLICIES, NEIGHBOURS)


def test_makers_are_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[set[str]] = []

    def makers_of(macs: set[str]) -> dict[str, str]:
        asked.append(set(macs))
        return {mac: "Maker" for mac in macs if mac != "none"}

    monkeypatch.setattr(client_list, "makers_of", makers_of)
    monkeypatch.setattr(client_list, "_MOST_MAKERS", 3)
    makers = Makers()
    assert dict(makers.of({"a", "none"})) == {"a": "Maker", "none": ""}
    assert makers.of({"a", "none"})["a"] == "Maker"
    makers.of({"a", "b"})
    makers.of({"c"})  # three are known: one more is kept
    assert asked == [{"a", "none"}, {"b"}, {"c"}]
    makers.of({"d"})  # four: all are forgotten
    makers.of({"a", "d"})
    assert asked[3:] == [{"d"}, {"a"}]

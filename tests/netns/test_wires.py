"""HTTPS on a transparent gateway: opened, passed through unread, refused at the name, passed for pinned apps."""

import time

import pytest

from tests.netns.netns_network import SITE, Network, until

pytestmark = pytest.mark.real
both_families = pytest.mark.parametrize("family", [4, 6])


@pytest.fixture(scope="module")
def network(wires: Network) -> Network:
    """The gateway is up; a bank is spliced, a blocked host is refused with an alert."""
    wires.environment["GATEWAYFILTER_TLS__DENY"] = "alert"
    wires.environment["GATEWAYFILTER_TLS__PASS_THROUGH_AFTER"] = "2"
    assert wires.cli("list", "add", "--splice", "bank.example").returncode == 0
    wires.start_filter()
    done = wires.cli("gateway", "up")
    assert done.returncode == 0, done.stderr
    wires.set_neighbours()
    return wires


def issuer(network: Network, family: int, host: str) -> str:
    """Returns whose certificate the client sees: `filter`, `origin`, or `none`."""
    found = network.say("issuer", SITE[family], host, str(network.ca), str(network.origin_ca)).get("issuer")
    return {str(network.ca): "filter", str(network.origin_ca): "origin"}.get(str(found), "none")


@both_families
def test_a_site_is_opened_and_a_bank_is_not(family: int, network: Network) -> None:
    assert issuer(network, family, "site.example") == "filter"
    assert issuer(network, family, "bank.example") == "origin"
    got = network.say("fetch", SITE[family], "bank.example", "/account", str(network.origin_ca))
    assert got == {"status": 200, "filter": "", "text": "site /account for bank.example"}


@both_families
def test_a_blocked_name_is_refused_before_any_certificate(family: int, network: Network) -> None:
    got = network.ask(family, "blocked.example", https=True)
    assert got["error"] == "SSLError", got
    assert "unrecognized name" in got["words"].lower().replace("_", " ")
    assert network.ask(family, "blocked.example")["status"] == 403  # without TLS there is a page to show


def test_a_pinned_app_is_noticed_and_a_blocked_name_never_is(network: Network) -> None:
    assert network.ask(4, "site.example", https=True)["status"] == 200  # the device trusts the filter elsewhere
    deadline = time.monotonic() + 60
    while issuer(network, 4, "app.example") != "origin":
        network.say("distrust", SITE[4], "app.example")
        network.say("distrust", SITE[4], "blocked.example")
        assert time.monotonic() < deadline
        moment = time.monotonic() + 2.1  # failures closer together count as one
        until("next moment", lambda: time.monotonic() >= moment)  # noqa: B023  asked in this very turn
    assert issuer(network, 4, "blocked.example") == "none"
    assert "app.example" in network.cli("pinned-apps", "list").stdout
    assert "blocked.example" not in network.cli("pinned-apps", "list").stdout

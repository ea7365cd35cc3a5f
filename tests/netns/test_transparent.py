"""What passes a transparent gateway and what does not: a client, the gateway and an origin in network namespaces of their own.

Needs root, `ip` and `nft`, and a kernel that lets us make namespaces; skips with the reason otherwise.
"""

import os
import signal

import psutil
import pytest

from tests.netns.netns_network import BOX, PORT, SETUP, SITE, Network, until

pytestmark = pytest.mark.real
both_families = pytest.mark.parametrize("family", [4, 6])
with_and_without_tls = pytest.mark.parametrize("https", [False, True])


@pytest.fixture(scope="module")
def network(wires: Network) -> Network:
    """The gateway is up."""
    wires.environment["GATEWAYFILTER_GATEWAY__OWN_PORT_80"] = "true"
    wires.environment["GATEWAYFILTER_GATEWAY__REJECT_DOT"] = "true"
    wires.start_filter()
    done = wires.cli("gateway", "up")
    assert done.returncode == 0, done.stderr
    wires.set_neighbours()
    return wires


@with_and_without_tls
@both_families
def test_a_site_passes(family: int, *, https: bool, network: Network) -> None:
    got = network.ask(family, "site.example", "/page", https=https)
    assert got == {"status": 200, "filter": "", "text": "site /page for site.example"}


@both_families
def test_http2_passes(family: int, network: Network) -> None:
    got = network.say("http2", SITE[family], "site.example", "/two", str(network.ca))
    assert got == {"protocol": "h2", "status": 200, "text": "site /two for site.example"}


@with_and_without_tls
@both_families
def test_a_websocket_passes(family: int, *, https: bool, network: Network) -> None:
    got = network.say("websocket", SITE[family], "site.example", str(network.ca) if https else "")
    assert got == {"messages": ["echo one", "echo two"]}


@with_and_without_tls
@both_families
def test_events_pass_as_they_come(family: int, *, https: bool, network: Network) -> None:
    got = network.say("events", SITE[family], "site.example", str(network.ca) if https else "")
    assert got == {"events": ["data: first", "data: second"]}


@with_and_without_tls
@both_families
def test_a_blocked_host_gets_the_page(family: int, *, https: bool, network: Network) -> None:
    got = network.ask(family, "blocked.example", https=https)
    assert got["status"] == 403
    assert got["filter"] == "block; reason=manual-block"
    assert "blocked.example" in got["text"]


@pytest.mark.parametrize("lead", ["", "\r\n", "\n"])
@both_families
def test_a_request_in_pieces_is_judged(family: int, lead: str, network: Network) -> None:
    for cut in (1, 2, 4, 5, 30):
        blocked = network.say("pieces", SITE[family], "blocked.example", "/x", cut, lead)
        assert blocked == {"status": 403, "filter": "block; reason=manual-block"}
        assert network.say("pieces", SITE[family], "site.example", "/x", cut, lead) == {"status": 200, "filter": ""}


@both_families
def test_a_certificate_for_another_name_is_refused(family: int, network: Network) -> None:
    got = network.ask(family, "elsewhere.example", https=True)
    assert got["status"] == 502
    assert got["filter"] == "error; reason=certificate"
    assert "prove that it is genuine" in got["text"]


@both_families
def test_quic_and_dns_over_tls_are_refused_at_once(family: int, network: Network) -> None:
    assert network.say("quic", SITE[family])["error"] == "ConnectionRefusedError"
    assert network.say("reach", SITE[family], 853)["error"] == "ConnectionRefusedError"
    assert network.json("gateway", "status")["quic_refused"] > 0


@both_families
def test_nobody_talks_to_the_filters_port_itself(family: int, network: Network) -> None:
    """A request that was not redirected would be sent to the filter itself, again and again."""
    assert network.say("reach", BOX[family], PORT, 2)["error"] == "TimeoutError"


@both_families
def test_ssh_and_the_dashboard_stay_reachable(family: int, network: Network) -> None:
    assert network.say("reach", BOX[family], 22)["says"].startswith("SSH-2.0")
    assert network.say("reach", BOX[family], 8081)["says"].startswith("dashboard")


@both_families
def test_the_set_up_page_has_a_fixed_address(family: int, network: Network) -> None:
    address = SETUP[family]
    host = f"[{address}]" if family == 6 else address
    page = network.say("fetch", address, host, "/", "")
    assert (page["status"], page["filter"]) == (200, "setup")
    assert f'data="https://{host}/trusted.svg?lang=en"' in page["text"]
    # Each worker looks at what the gateway does now and then, and any of them may answer.
    until("news of the gateway", lambda: "The gateway refuses it" in network.say("fetch", address, host, "/", "")["text"])
    trusted = network.say("fetch", address, host, "/trusted.svg", str(network.ca))
    assert trusted["status"] == 200


@both_families
def test_the_gateways_own_port_80_serves_wpad(family: int, network: Network) -> None:
    got = network.say("fetch", BOX[family], "wpad.lan", "/wpad.dat", "")
    assert got["status"] == 200
    assert "FindProxyForURL" in got["text"]


def test_both_workers_get_connections_by_one_port(network: Network) -> None:
    def served() -> list[int]:
        return [network.status(f"proxy-{index}").get("counters", {}).get("requests", 0) for index in (0, 1)]

    def asked_and_spread() -> bool:
        network.ask(4, "site.example", "/spread")
        return all(served())

    until("request at each worker", asked_and_spread, 30)


def test_a_killed_worker_is_not_missed(network: Network) -> None:
    fallen = network.status("proxy-0")["pid"]
    os.kill(fallen, signal.SIGKILL)
    until("end of it", lambda: not psutil.pid_exists(fallen))
    for number in range(20):  # the kernel gives new connections to the other one
        assert network.ask(4, "site.example", f"/{number}")["status"] == 200
    until("new worker", lambda: network.status("proxy-0").get("pid", fallen) != fallen)
    until("serving", lambda: network.status("proxy-0").get("state") == "serving")
    assert network.ask(6, "blocked.example", https=True)["status"] == 403

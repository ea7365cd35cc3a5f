"""No way in: what a client on the LAN gets of the gateway's own services and of other internal networks, by every way there is.

Needs root, `ip` and `nft`, and a kernel that lets us make namespaces; skips with the reason otherwise.
"""

import sys
from collections.abc import Iterator

import pytest

from tests.netns.netns_network import BOX, CLIENT, INTERNET, PORT, SITE, Network, until

pytestmark = pytest.mark.real

INNER = 9999
MANAGEMENT = "10.66.0.10"
"""A machine of a network that the gateway is in, and the client is not."""
NAMES = {
    "loop.attacker.com": "127.0.0.1",
    "six.attacker.com": "::1",
    "box.attacker.com": BOX[4],
    "box6.attacker.com": BOX[6],
    "management.attacker.com": MANAGEMENT,
    "neighbour.attacker.com": CLIENT[4],
    "metadata.attacker.com": "169.254.169.254",
}
LITERALS = ("127.0.0.1", "127.9.9.9", "localhost", "0.0.0.0", "[::]", "[::1]", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1",
            "0177.1", BOX[4], f"[{BOX[6]}]", f"[::ffff:{BOX[4]}]", "169.254.169.254", MANAGEMENT)  # fmt: skip
_SERVICE = f"""
import socket, threading
def serve(server):
    while True:
        line, peer = server.accept()
        print("reached", peer, flush=True)
        line.recv(65536)
        line.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 6\\r\\nConnection: close\\r\\n\\r\\nsecret")
        line.close()
for port in ({INNER}, 80, 443):
    server = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
    threading.Thread(target=serve, args=(server,)).start()
print("ready", flush=True)
"""


@pytest.fixture(scope="module")
def network(wires: Network) -> Iterator[Network]:
    """A service on every address of the gateway, names that lead inside, and connections to them that pass unread."""
    for name, address in NAMES.items():
        wires.name(address, name)
    wires.add_address("gateway", "10.66.0.1/24", "wan0")
    wires.add_address("origin", f"{MANAGEMENT}/24", "eth0")
    wires.add_address("gateway", "169.254.169.254/32", "lo")
    log = wires.folder / "service.log"
    with log.open("w") as file:
        wires.start("gateway", sys.executable, "-c", _SERVICE, stdout=file)
    until("service", lambda: "ready" in log.read_text())
    for name in NAMES:
        assert wires.cli("list", "add", "--splice", f"spliced-{name}").returncode == 0
    for name, address in NAMES.items():
        wires.name(address, f"spliced-{name}")
    yield wires
    wires.stop_filter()


def start(network: Network, mode: str, **settings: str) -> None:
    network.stop_filter()
    network.environment["GATEWAYFILTER_PROXY__MODE"] = mode
    network.environment |= {f"GATEWAYFILTER_{name.upper()}": value for name, value in settings.items()}
    network.start_filter()


def reached(network: Network) -> int:
    return (network.folder / "service.log").read_text().count("reached")


def explicit(network: Network, host: str, port: int = INNER, family: int = 4) -> tuple[int, str, str]:
    got = network.say("fetch", BOX[family], host, f"http://{host}:{port}/", "", PORT)
    return got["status"], got["filter"], got["text"]


def test_a_client_of_the_lan_reaches_no_internal_address(network: Network) -> None:
    start(network, "regular")
    before = reached(network)
    for family in (4, 6):
        for host in (*LITERALS, *NAMES):
            status, what, text = explicit(network, host, family=family)
            assert (host, status, what) == (host, 403, "block; reason=internal-address")
            assert "secret" not in text
    for host in (*LITERALS, *NAMES):
        for first in ("GET / HTTP/1.1\r\nHost: x\r\n\r\n", "SSH-2.0-client\r\n"):
            got = network.say("tunnel", BOX[4], PORT, f"{host}:{INNER}", first)
            assert "secret" not in got.get("text", ""), (host, first)
    for host in NAMES:
        got = network.say("tunnel", BOX[4], PORT, f"spliced-{host}:{INNER}", "GET / HTTP/1.1\r\n\r\n")
        assert got["answer"].startswith("HTTP/1.1 403"), host
        assert "internal-address" in got["answer"] + got["text"]
    assert reached(network) == before
    until(
        "count", lambda: any(network.status(f"proxy-{number}").get("counters", {}).get("internal_refused") for number in (0, 1))
    )
    page = network.say("fetch", BOX[4], f"{BOX[4]}:{PORT}", f"http://{BOX[4]}:{PORT}/", "", PORT)
    assert page["filter"] == "setup"  # the filter's own page is no way in


def test_a_client_of_the_lan_reaches_the_internet_and_its_own_link(network: Network) -> None:
    start(network, "regular")
    assert explicit(network, "site.example", 80)[0] == 200
    assert explicit(network, CLIENT[4], 1)[0] == 502  # its own address: it may, but there is nothing
    assert explicit(network, f"[{CLIENT[6]}]", 1)[0] == 502


def test_the_operator_opens_networks(network: Network) -> None:
    start(network, "regular", proxy__allow_networks=f"{INTERNET},127.0.0.0/8,10.0.0.0/8")
    try:
        for host in ("127.0.0.1", "localhost", "loop.attacker.com"):
            assert explicit(network, host)[::2] == (200, "secret")
        got = network.say("tunnel", BOX[4], PORT, f"spliced-loop.attacker.com:{INNER}", "GET / HTTP/1.1\r\n\r\n")
        assert got["answer"].startswith("HTTP/1.1 200")
        for host in (MANAGEMENT, "management.attacker.com"):
            assert explicit(network, host, 80)[0] == 200
        before = reached(network)
        for host in ("[::1]", "six.attacker.com", BOX[4], "box.attacker.com", "10.66.0.1", "169.254.169.254"):
            assert explicit(network, host)[:2] == (403, "block; reason=internal-address")
        assert reached(network) == before
    finally:
        network.environment["GATEWAYFILTER_PROXY__ALLOW_NETWORKS"] = INTERNET


def test_the_crawler_stays_out_of_public_addresses_of_its_own_links(network: Network) -> None:
    network.add_address("gateway", "93.184.216.2/32", "lo")
    network.add_address("gateway", "2a00:1450:4001::1/64", "lan0")
    network.name("93.184.216.2", "own.attacker.com")
    before = reached(network)
    for host in ("93.184.216.2", "[2a00:1450:4001::1]", "[2a00:1450:4001::5]", "own.attacker.com"):
        done = network.cli("crawl", f"http://{host}/page")
        assert "is an address of this machine or of its own network" in done.stdout + done.stderr, host
    assert reached(network) == before


def test_a_redirected_connection_goes_where_it_was_going_and_nowhere_else(network: Network) -> None:
    start(network, "transparent", gateway__filter_private="true")
    done = network.cli("gateway", "up")
    assert done.returncode == 0, done.stderr
    network.set_neighbours()
    before = reached(network)
    for name in NAMES:
        got = network.say("issuer", SITE[4], f"spliced-{name}", str(network.origin_ca))
        assert "error" in got, name  # its handshake is ended
        got = network.say("fetch", SITE[4], name, "/page", "")  # plain HTTP goes to the address, whatever it says of itself
        assert got["text"] == f"site /page for {name}"
    assert reached(network) == before
    assert network.say("fetch", MANAGEMENT, "management.attacker.com", "/page", "")["status"] == 200
    assert network.cli("gateway", "down").returncode == 0

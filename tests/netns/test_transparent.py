"""A client, the gateway and an origin in network namespaces of their own: transparent mode with the rules of deploy/nftables.

Needs root, `ip` and `nft`, and a kernel that lets us make namespaces; skips with the reason otherwise.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trustme

pytestmark = pytest.mark.real

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
COMMAND = str(Path(sys.executable).with_name("gatewayfilter"))
SITE = {4: "203.0.113.10", 6: "2001:db8:9::10"}
"""Documentation addresses: the rules let private ones pass unfiltered."""
PORT = 8080


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
    return done.stdout


def until(what: str, ask: Callable[[], bool], timeout_s: float = 20) -> None:
    deadline = time.monotonic() + timeout_s
    while not ask():
        assert time.monotonic() < deadline, f"no {what} within {timeout_s} s"
        time.sleep(0.05)


def why_not() -> str:
    """Returns why namespaces cannot be used here, empty when they can."""
    if os.geteuid() != 0:
        return "needs root to make network namespaces"
    for tool in ("ip", "nft", "sysctl"):
        if shutil.which(tool) is None:
            return f"needs the command {tool}"
    name = f"gf-try-{os.getpid()}"
    steps = [
        ["ip", "netns", "add", name],
        ["ip", "netns", "exec", name, "nft", "add", "table", "inet", "try"],
        ["ip", "-n", name, "link", "add", "try0", "type", "veth", "peer", "name", "try1"],
        ["ip", "netns", "exec", name, "sysctl", "-qw", "net.ipv6.conf.all.forwarding=1"],
    ]
    try:
        for step in steps:
            if subprocess.run(step, capture_output=True, check=False, timeout=10).returncode:
                return f"the kernel does not let us: {' '.join(step[:4])}"
    finally:
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False, timeout=10)
    return ""


@dataclass
class Network:
    """The three namespaces, and the client's process in its own."""

    client: subprocess.Popen[str]
    gateway: str
    state: Path

    def ask(self, family: int, host: str, path: str = "/", *, https: bool = False) -> dict[str, Any]:
        """Sends a request from the client, to the site's address under any name."""
        ca = str(self.state / "ca" / "mitmproxy-ca-cert.pem") if https else ""
        return self.say({"kind": "fetch", "arguments": [SITE[family], host, path, ca]})

    def say(self, asked: dict[str, object]) -> dict[str, Any]:
        assert self.client.stdin is not None
        assert self.client.stdout is not None
        self.client.stdin.write(json.dumps(asked) + "\n")
        self.client.stdin.flush()
        return dict(json.loads(self.client.stdout.readline()))


def connect(client: str, gateway: str, origin: str) -> None:
    """Joins the namespaces by two cables: LAN (fd00:77::/64, 192.168.77.0/24) and uplink."""
    cables = [
        (client, "eth0", "192.168.77.2/24", "fd00:77::2/64", "lan0", "192.168.77.1/24", "fd00:77::1/64"),
        (origin, "eth0", f"{SITE[4]}/24", f"{SITE[6]}/64", "wan0", "203.0.113.1/24", "2001:db8:9::1/64"),
    ]
    for name in (client, gateway, origin):
        run("ip", "-n", name, "link", "set", "lo", "up")
    for far, far_end, far4, far6, near_end, near4, near6 in cables:
        run("ip", "link", "add", far_end, "netns", far, "type", "veth", "peer", "name", near_end, "netns", gateway)
        for name, end in ((far, far_end), (gateway, near_end)):
            run("ip", "-n", name, "link", "set", end, "up")
        for name, end, *addresses in ((far, far_end, far4, far6), (gateway, near_end, near4, near6)):
            for address in addresses:
                run("ip", "-n", name, "address", "add", address, "dev", end, *(["nodad"] if ":" in address else []))
        for near in (near4, near6):
            run("ip", "-n", far, "route", "add", "default", "via", near.partition("/")[0])
    run("ip", "netns", "exec", gateway, "sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1")


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    if reason := why_not():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("netns")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "origin-ca.pem"))
    authority.issue_cert("site.example", "other.example").private_key_and_cert_chain_pem.write_to_path(str(folder / "origin.pem"))
    names = [f"gf-{what}-{os.getpid()}" for what in ("client", "gateway", "origin")]
    client, gateway, origin = names
    state = folder / "state"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GATEWAYFILTER_")} | {
        "HOME": str(folder),
        "GATEWAYFILTER_DATA_DIR": str(state),
        "GATEWAYFILTER_PROXY__MODE": "transparent",
        "GATEWAYFILTER_PROXY__LISTEN": f"[::]:{PORT}",
        "GATEWAYFILTER_PROXY__WORKERS": "1",
        "GATEWAYFILTER_PROXY__UPSTREAM_CA": str(folder / "origin-ca.pem"),
        "GATEWAYFILTER_LEARN__ENABLED": "false",
    }
    with ExitStack() as stack:

        def start(namespace: str, *command: str, **options: Any) -> subprocess.Popen[str]:
            process = subprocess.Popen(["ip", "netns", "exec", namespace, *command], text=True, **options)
            stack.callback(process.wait, 20)
            stack.callback(process.terminate)
            return process

        for name in names:
            run("ip", "netns", "add", name)
            stack.callback(subprocess.run, ["ip", "netns", "del", name], check=False)
        connect(client, gateway, origin)
        run("ip", "netns", "exec", gateway, "nft", "-f", str(ROOT / "deploy" / "nftables" / "gateway.nft"))
        added = subprocess.run(
            [COMMAND, "list", "add", "--block", "blocked.example"], env=environment, capture_output=True, text=True, check=False
        )
        assert added.returncode == 0, added.stderr
        site = start(origin, sys.executable, str(HERE / "netns_site.py"), str(folder / "origin.pem"), stdout=subprocess.PIPE)
        log = stack.enter_context((folder / "gateway.log").open("w"))
        start(gateway, COMMAND, "run", env=environment, stdout=log, stderr=log)
        asker = start(client, sys.executable, str(HERE / "netns_client.py"), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert site.stdout is not None
        assert site.stdout.readline() == "ready\n"
        until("banner", lambda: "is filtering on" in (folder / "gateway.log").read_text())
        found = Network(asker, gateway, state)
        for family in (4, 6):  # the neighbours get to know each other
            until(f"way by IPv{family}", lambda family=family: "status" in found.ask(family, "site.example"))  # type: ignore[misc]
        yield found


@pytest.mark.parametrize("https", [False, True])
@pytest.mark.parametrize("family", [4, 6])
def test_a_site_passes(family: int, *, https: bool, network: Network) -> None:
    got = network.ask(family, "site.example", "/page", https=https)
    assert got == {"status": 200, "filter": "", "text": "site /page for site.example"}


@pytest.mark.parametrize("https", [False, True])
@pytest.mark.parametrize("family", [4, 6])
def test_a_blocked_host_gets_the_page(family: int, *, https: bool, network: Network) -> None:
    got = network.ask(family, "blocked.example", https=https)
    assert got["status"] == 403
    assert got["filter"] == "block; reason=person-block"
    assert "blocked.example" in got["text"]


@pytest.mark.parametrize("family", [4, 6])
def test_a_certificate_for_another_name_is_refused(family: int, network: Network) -> None:
    got = network.ask(family, "elsewhere.example", https=True)
    assert got["status"] == 502
    assert got["filter"] == "error; reason=certificate"
    assert "prove that it is genuine" in got["text"]


@pytest.mark.parametrize("family", [4, 6])
def test_quic_is_refused_at_once(family: int, network: Network) -> None:
    assert network.say({"kind": "quic", "address": SITE[family]}) == {"error": "ConnectionRefusedError"}


@pytest.mark.parametrize("address", ["192.168.77.1", "fd00:77::1"])
def test_nobody_talks_to_the_filters_port_itself(address: str, network: Network) -> None:
    """A request that was not redirected would be sent to the filter itself, again and again."""
    command = ["ip", "netns", "exec", network.gateway.replace("gateway", "client"), sys.executable, "-c"]
    script = f"import socket; socket.create_connection(({address!r}, {PORT}), 0.5)"
    done = subprocess.run([*command, script], capture_output=True, text=True, check=False, timeout=10)
    assert "timed out" in done.stderr

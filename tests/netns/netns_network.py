"""A client, the gateway and an origin in network namespaces of their own, and the filter with its real commands."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import trustme

from gatewayfilter.gateway.runtime_state import RUN_FOLDER

HERE = Path(__file__).parent
COMMAND = str(Path(sys.executable).with_name("gatewayfilter"))
SITE = {4: "203.0.113.10", 6: "2001:db8:9::10"}
"""Documentation addresses: private ones pass unfiltered."""
INTERNET = "203.0.113.0/24,2001:db8:9::/64"
"""They stand for the internet, whereas to the filter documentation addresses are internal ones."""
BOX = {4: "192.168.77.1", 6: "fd00:77::1"}
CLIENT = {4: "192.168.77.2", 6: "fd00:77::2"}
SETUP = {4: "192.0.2.80", 6: "2001:db8::80"}
NAMES = ("site.example", "other.example", "blocked.example", "bank.example", "app.example")
PORT = 8080
START_S = 120


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
    return done.stdout


def until(what: str, ask: Callable[[], bool], timeout_s: float = 60) -> None:
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
            if subprocess.run(step, capture_output=True, check=False, timeout=60).returncode:
                return f"the kernel does not let us: {' '.join(step[:4])}"
    finally:
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False, timeout=60)
    return ""


class Network:
    """The namespaces, what runs in them, and what can be done from each.

    Attributes:
        environment: the settings of the filter; a test may change them between two starts.
    """

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self._stack = stack
        self.state = folder / "state"
        self._names = {what: f"gf-{what}-{os.getpid()}" for what in ("client", "gateway", "origin")}
        self._filter: subprocess.Popen[str] | None = None
        self.ca = self.state / "ca" / "mitmproxy-ca-cert.pem"
        self.origin_ca = folder / "origin-ca.pem"
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("GATEWAYFILTER_")} | {
            "HOME": str(folder),
            "GATEWAYFILTER_DATA_DIR": str(self.state),
            "GATEWAYFILTER_PROXY__MODE": "transparent",
            "GATEWAYFILTER_PROXY__LISTEN": f"[::]:{PORT}",
            "GATEWAYFILTER_WEB__LISTEN": "",
            "GATEWAYFILTER_PROXY__WORKERS": "2",
            "GATEWAYFILTER_PROXY__ALLOW_NETWORKS": INTERNET,
            "GATEWAYFILTER_PROXY__UPSTREAM_CA": str(self.origin_ca),
            "GATEWAYFILTER_LEARN__ENABLED": "false",
            "GATEWAYFILTER_GATEWAY__LAN": "lan0",
        }
        self._make()

    def _make(self) -> None:
        authority = trustme.CA()
        authority.cert_pem.write_to_path(str(self.origin_ca))
        pem = self.folder / "origin.pem"
        authority.issue_cert(*NAMES).private_key_and_cert_chain_pem.write_to_path(str(pem))
        # `ip netns exec` lays this over /etc/hosts: connections that pass through unread go to where their name leads.
        etc = Path("/etc/netns") / self._names["gateway"]
        etc.mkdir(parents=True)
        self._stack.callback(shutil.rmtree, etc)
        (etc / "hosts").write_text("127.0.0.1 localhost\n" + "".join(f"{at} {' '.join(NAMES)}\n" for at in SITE.values()))
        for name in self._names.values():
            run("ip", "netns", "add", name)
            self._stack.callback(subprocess.run, ["ip", "netns", "del", name], check=False)
            run("ip", "-n", name, "link", "set", "lo", "up")
        self._connect()
        self._start_ready("origin", sys.executable, str(HERE / "netns_site.py"), str(pem))
        self._start_ready("gateway", sys.executable, str(HERE / "netns_services.py"))
        self._client = self.start(
            "client", sys.executable, str(HERE / "netns_client.py"), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        inode = run("ip", "netns", "exec", self._names["gateway"], "stat", "-Lc", "%i", "/proc/self/ns/net").strip()
        for kind in ("gateway", "watchdog"):
            for end in ("json", "lock"):
                self._stack.callback((RUN_FOLDER / f"{kind}-{inode}.{end}").unlink, missing_ok=True)

    def _connect(self) -> None:
        """Joins the namespaces by two cables: LAN (fd00:77::/64, 192.168.77.0/24) and uplink."""
        client, gateway, origin = self._names.values()
        cables = [
            (client, "eth0", f"{CLIENT[4]}/24", f"{CLIENT[6]}/64", "lan0", f"{BOX[4]}/24", f"{BOX[6]}/64"),
            (origin, "eth0", f"{SITE[4]}/24", f"{SITE[6]}/64", "wan0", "203.0.113.1/24", "2001:db8:9::1/64"),
        ]
        for far, far_end, far4, far6, near_end, near4, near6 in cables:
            run("ip", "link", "add", far_end, "netns", far, "type", "veth", "peer", "name", near_end, "netns", gateway)
            for name, end in ((far, far_end), (gateway, near_end)):
                run("ip", "-n", name, "link", "set", end, "up")
            for name, end, *addresses in ((far, far_end, far4, far6), (gateway, near_end, near4, near6)):
                for address in addresses:
                    run("ip", "-n", name, "address", "add", address, "dev", end, *(["nodad"] if ":" in address else []))
            for near in (near4, near6):
                run("ip", "-n", far, "route", "add", "default", "via", near.partition("/")[0])
        # A gateway has a way out; what it leads to is not there.
        run("ip", "-n", gateway, "route", "add", "default", "via", SITE[4])
        run("ip", "-n", gateway, "route", "add", "default", "via", SITE[6])

    def start(self, where: str, *command: str, **options: Any) -> subprocess.Popen[str]:
        """Starts a program in a namespace; it ends with the network."""
        process = subprocess.Popen(["ip", "netns", "exec", self._names[where], *command], text=True, **options)
        self._stack.callback(process.wait, 60)
        self._stack.callback(process.terminate)
        return process

    def _start_ready(self, where: str, *command: str) -> None:
        process = self.start(where, *command, stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"

    def name(self, address: str, *names: str) -> None:
        """Gives an address further names, as the gateway's resolver sees them."""
        with (Path("/etc/netns") / self._names["gateway"] / "hosts").open("a") as hosts:
            hosts.write(f"{address} {' '.join(names)}\n")

    def add_address(self, where: str, address: str, interface: str) -> None:
        """Gives an interface of a namespace one more address."""
        run("ip", "-n", self._names[where], "address", "add", address, "dev", interface, *(["nodad"] if ":" in address else []))

    def in_gateway(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Runs a program in the gateway's namespace."""
        line = ["ip", "netns", "exec", self._names["gateway"], *command]
        return subprocess.run(line, env=self.environment, capture_output=True, text=True, check=False, timeout=120)

    def cli(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs a command of the filter in the gateway's namespace."""
        return self.in_gateway(COMMAND, *arguments)

    def json(self, *arguments: str) -> Any:
        """Runs a command and returns its JSON."""
        done = self.cli(*arguments, "--json")
        assert done.returncode in {0, 1}, done.stderr
        return json.loads(done.stdout)

    def start_filter(self) -> None:
        """Starts the filter in the gateway and waits until all its workers serve."""
        log = self.folder / "gateway.log"
        log.write_text("")
        with log.open("a") as file:
            self._filter = self.start("gateway", COMMAND, "run", env=self.environment, stdout=file, stderr=file)
        until("banner", lambda: self._told(log), START_S)

    def _told(self, log: Path) -> bool:
        assert self._filter is not None
        assert self._filter.poll() is None, log.read_text()[-3000:]
        return "is filtering on" in log.read_text()

    def stop_filter(self) -> None:
        """Ends the filter."""
        if self._filter is not None:
            self._filter.send_signal(signal.SIGTERM)
            self._filter.wait(60)
            self._filter = None

    @property
    def filtering(self) -> bool:
        """Whether the filter runs."""
        return self._filter is not None

    def status(self, name: str) -> dict[str, Any]:
        """Returns what a process of the filter says of itself; empty while it says nothing."""
        try:
            return dict(json.loads((self.state / "run" / f"{name}.json").read_text()))
        except (OSError, ValueError):
            return {}

    def say(self, kind: str, *arguments: object) -> dict[str, Any]:
        """Lets the client do something and returns what came of it."""
        assert self._client.stdin is not None
        assert self._client.stdout is not None
        self._client.stdin.write(json.dumps({"kind": kind, "arguments": arguments}) + "\n")
        self._client.stdin.flush()
        return dict(json.loads(self._client.stdout.readline()))

    def ask(self, family: int, host: str, path: str = "/", *, https: bool = False, short: bool = False) -> dict[str, Any]:
        """Sends a request from the client, to the site's address under any name; `short` waits one second for the answer."""
        return self.say("fetch", SITE[family], host, path, str(self.ca) if https else "", 0, *([1] if short else []))

    def set_neighbours(self) -> None:
        """Waits until the neighbours know each other and web traffic flows in both families."""
        for family in (4, 6):
            until(f"way by IPv{family}", lambda family=family: "status" in self.ask(family, "site.example"))  # type: ignore[misc]


@contextmanager
def network_in(folder: Path) -> Iterator[Network]:
    """Makes the network; takes everything down at the end."""
    with ExitStack() as stack:
        made = Network(folder, stack)
        stack.callback(made.cli, "gateway", "down")
        stack.callback(made.stop_filter)
        added = made.cli("list", "add", "--block", "blocked.example")
        assert added.returncode == 0, added.stderr
        yield made

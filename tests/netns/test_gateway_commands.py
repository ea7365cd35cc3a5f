"""`gatewayfilter gateway` and `doctor` with the real commands on a real kernel, step by step, in an order of their own."""

import re
import sys
from collections.abc import Iterator

import psutil
import pytest

from gatewayfilter.config import Settings
from gatewayfilter.gateway.plan import make_plan
from gatewayfilter.gateway.ruleset import tried_ruleset
from gatewayfilter.proxy.auth.user_file import PasswordHash
from tests.netns.netns_network import BOX, CLIENT, PORT, SITE, Network, until

pytestmark = pytest.mark.real
SWITCHES = ("net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding", "net.ipv4.conf.lan0.send_redirects")


def switches(network: Network) -> list[str]:
    return network.in_gateway("sysctl", "-n", *SWITCHES).stdout.split()


def tables(network: Network) -> str:
    return network.in_gateway("nft", "list", "tables").stdout


def doctor(network: Network) -> dict[str, str]:
    """Returns each check's level."""
    return {item["check"]: item["level"] for item in network.json("doctor")["findings"]}


@pytest.fixture
def network(wires: Network) -> Iterator[Network]:
    """The filter runs and the gateway is down; it is so again afterwards, whatever a test does."""
    before = dict(wires.environment)
    if not wires.filtering:
        wires.start_filter()
    yield wires
    wires.environment = before
    wires.cli("gateway", "down")


def up(network: Network, *options: str) -> None:
    done = network.cli("gateway", "up", *options)
    assert done.returncode == 0, done.stderr
    network.set_neighbours()


def test_up_twice_and_down_leave_no_trace(network: Network) -> None:
    before = switches(network)
    assert before == ["0", "0", "1"]
    assert network.json("gateway", "status")["state"] == "down"
    assert network.json("gateway", "up")["changed"] is True
    assert network.json("gateway", "up")["changed"] is False
    assert switches(network) == ["1", "1", "0"]
    found = network.json("gateway", "status")
    assert (found["state"], found["problems"], found["listening"], found["forwarding"]) == ("up", [], [4, 6], [4, 6])
    assert network.cli("gateway", "status").returncode == 0
    assert network.json("gateway", "down")["changed"] is True
    assert network.json("gateway", "down")["changed"] is False
    assert switches(network) == before
    assert "gatewayfilter" not in tables(network)
    assert network.cli("gateway", "status").returncode == 1


def test_what_print_shows_is_what_up_loads(network: Network) -> None:
    printed = network.cli("gateway", "print").stdout
    up(network)
    loaded = network.in_gateway("nft", "-s", "list", "table", "inet", "gatewayfilter").stdout
    network.cli("gateway", "down")
    (network.folder / "rules.nft").write_text(printed)
    assert network.in_gateway("nft", "-f", str(network.folder / "rules.nft")).returncode == 0
    assert network.in_gateway("nft", "-s", "list", "table", "inet", "gatewayfilter").stdout == loaded
    assert network.json("gateway", "status")["state"] == "foreign"


@pytest.mark.parametrize("family", [4, 6])
def test_down_lets_traffic_past_and_up_takes_it_back(network: Network, family: int) -> None:
    up(network)
    assert network.ask(family, "blocked.example")["status"] == 403
    assert network.say("quic", SITE[family])["error"] == "ConnectionRefusedError"
    network.cli("gateway", "down")
    network.in_gateway("sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1")
    assert network.ask(family, "blocked.example") == {"status": 200, "filter": "", "text": "site / for blocked.example"}
    assert network.say("quic", SITE[family]) == {"answer": 8}
    network.in_gateway("sysctl", "-qw", "net.ipv4.ip_forward=0", "net.ipv6.conf.all.forwarding=0")


@pytest.mark.parametrize(
    ("options", "words"),
    [(("--lan", "lan7"), "no interface lan7"), (("--lan", "lo"), "own traffic"), (("--lan", "a b"), "no name")],
)
def test_a_plan_that_cannot_be_changes_nothing(network: Network, options: tuple[str, ...], words: str) -> None:
    done = network.cli("gateway", "up", *options)
    assert (done.returncode, words in done.stderr) == (2, True), done.stderr
    assert switches(network) == ["0", "0", "1"]
    assert "gatewayfilter" not in tables(network)


def test_without_a_filter_nothing_is_changed_unless_it_is_asked_for(network: Network) -> None:
    network.stop_filter()
    done = network.cli("gateway", "up", "--wait", "0.2")
    assert (done.returncode, "nothing listens" in done.stderr) == (2, True), done.stderr
    assert switches(network) == ["0", "0", "1"]
    assert "gatewayfilter" not in tables(network)
    done = network.cli("gateway", "up", "--no-check")
    assert done.returncode == 0, done.stderr
    for family in (4, 6):  # fail closed
        assert network.ask(family, "site.example")["error"] == "ConnectionRefusedError"
        assert network.say("reach", BOX[family], 22)["says"].startswith("SSH")


def test_an_unconfirmed_up_is_taken_back(network: Network) -> None:
    done = network.cli("gateway", "up", "--confirm", "1")  # nobody presses Enter
    assert done.returncode == 1
    assert "gatewayfilter" not in tables(network)
    assert switches(network) == ["0", "0", "1"]


def test_rules_that_somebody_changed_are_told(network: Network) -> None:
    up(network)
    network.in_gateway("nft", "flush", "chain", "inet", "gatewayfilter", "forward")
    done = network.cli("gateway", "status")
    assert (done.returncode, "changed since they were loaded" in done.stdout) == (1, True), done.stdout
    up(network)
    assert network.cli("gateway", "status").returncode == 0


def test_devices_and_sites_that_are_free_go_past(network: Network) -> None:
    network.environment["GATEWAYFILTER_GATEWAY__FREE_DEVICES"] = CLIENT[4]
    network.environment["GATEWAYFILTER_GATEWAY__FREE_SITES"] = SITE[6]
    up(network)
    for family in (4, 6):
        assert network.ask(family, "blocked.example")["status"] == 200
    network.environment["GATEWAYFILTER_GATEWAY__FREE_SITES"] = ""
    assert network.json("gateway", "status")["state"] == "outdated"
    up(network)
    assert network.ask(4, "blocked.example")["status"] == 200
    assert network.ask(6, "blocked.example")["status"] == 403


def test_it_fails_open_and_closes_again(network: Network) -> None:
    up(network, "--fail-open")
    until("watchdog", lambda: network.json("gateway", "status", "--fail-open")["watched"])
    assert network.ask(4, "blocked.example")["status"] == 403
    network.stop_filter()
    for family in (4, 6):
        until("open way", lambda family=family: network.ask(family, "blocked.example").get("status") == 200)  # type: ignore[misc]
        assert network.say("quic", SITE[family])["error"] == "ConnectionRefusedError"
        assert network.say("reach", BOX[family], 22)["says"].startswith("SSH")
    found = network.cli("gateway", "status", "--fail-open")
    assert (found.returncode, "open: web traffic goes past" in found.stdout) == (1, True), found.stdout
    network.start_filter()
    for family in (4, 6):
        until("closed way", lambda family=family: network.ask(family, "blocked.example").get("status") == 403)  # type: ignore[misc]
    network.cli("gateway", "down")
    until("end of the watchdog", lambda: not network.json("gateway", "status")["watched"])


def test_it_fails_open_when_workers_hang(network: Network) -> None:
    network.stop_filter()
    network.environment["GATEWAYFILTER_PROXY__STALL_S"] = "0"  # nobody replaces them
    network.start_filter()
    workers = [psutil.Process(network.status(name)["pid"]) for name in ("proxy-0", "proxy-1")]
    up(network, "--fail-open")
    workers[0].suspend()
    try:
        answers = [network.ask(4, "blocked.example", short=True).get("status") for _ in range(6)]
        assert set(answers) <= {403, None}  # what comes to the one that hangs waits; nothing goes past
        workers[1].suspend()
        for family in (4, 6):
            until("open way", lambda family=family: network.ask(family, "blocked.example", short=True).get("status") == 200)  # type: ignore[misc]
        assert network.json("gateway", "status", "--fail-open")["state"] == "open"
    finally:
        for worker in workers:
            worker.resume()
    until("closed way", lambda: network.ask(4, "blocked.example").get("status") == 403)
    assert [network.status(name)["pid"] for name in ("proxy-0", "proxy-1")] == [worker.pid for worker in workers]
    network.stop_filter()


def test_in_the_foreground_it_keeps_the_rules_and_takes_them_back_at_the_end(network: Network) -> None:
    from tests.netns.netns_network import COMMAND  # noqa: PLC0415  used once

    process = network.start("gateway", COMMAND, "gateway", "up", "--foreground", "--fail-open", env=network.environment)
    until("rules", lambda: "gatewayfilter" in tables(network))
    until("watchdog", lambda: network.json("gateway", "status", "--fail-open")["watched"])
    network.set_neighbours()
    assert network.ask(4, "blocked.example")["status"] == 403
    for _ in range(5):
        assert network.in_gateway("nft", "flush", "ruleset").returncode == 0
        until("rules again", lambda: "gatewayfilter" in tables(network))
        for family in (4, 6, 4, 6):  # from the moment that the table is listed on
            assert network.ask(family, "blocked.example")["status"] == 403
    process.terminate()
    assert process.wait(60) == 0
    assert "gatewayfilter" not in tables(network)
    assert switches(network) == ["0", "0", "1"]


@pytest.mark.parametrize("family", [4, 6])
def test_a_connection_made_past_the_rules_ends_when_they_are_back(network: Network, family: int) -> None:
    up(network)
    # As on a machine whose other rules look at connections: the kernel goes on to follow them without ours.
    for line in ("add table inet other", "add chain inet other seen { type filter hook forward priority 0 ; }",
                 "add rule inet other seen ct state established counter"):  # fmt: skip
        assert network.in_gateway("nft", line).returncode == 0
    assert network.in_gateway("nft", "delete", "table", "inet", "gatewayfilter").returncode == 0
    try:
        assert network.say("keep", SITE[family], "blocked.example") == {"status": 200}
        assert network.say("keep", SITE[family], "blocked.example") == {"status": 200}
        assert network.say("ask_kept") == {"status": 200}
        assert network.cli("gateway", "up").returncode == 0
        assert network.say("ask_kept")["error"] == "ConnectionResetError"
        assert network.ask(family, "blocked.example")["status"] == 403
        assert network.ask(family, "site.example")["status"] == 200
    finally:
        network.in_gateway("nft", "delete", "table", "inet", "other")


NEWS = """
import subprocess
from gatewayfilter.gateway.netlink_monitor import NetlinkMonitor

def nft(*words):
    subprocess.run(["nft", *words], check=True)

with NetlinkMonitor() as news:
    told = [news.wait(0)]
    nft("add", "table", "inet", "news")
    told.append(news.wait(0.5))
    nft("delete", "table", "inet", "news")
    told.append(news.wait(20))
    nft("add", "table", "inet", "news")
    nft("flush", "ruleset")
    told.append(news.wait(20))
print(told)
"""


def test_the_kernel_tells_of_a_deleted_table_at_once(network: Network) -> None:
    done = network.in_gateway(sys.executable, "-c", NEWS)
    assert done.stdout == "[False, False, True, True]\n", done.stderr


def test_a_dry_run_leaves_nothing_to_be_seen(network: Network) -> None:
    """The check of `gateway up`, over and over, while somebody lists the tables."""
    rules = network.folder / "tried.nft"
    rules.write_text(tried_ruleset(make_plan(Settings.model_validate(
        {"proxy": {"mode": "transparent", "listen": f"[::]:{PORT}"}, "gateway": {"lan": ["lan0"]}}))))  # fmt: skip
    trying = network.start("gateway", "sh", "-c", f"for i in $(seq 60); do nft -c -f {rules} || exit 1; done")
    seen = [tables(network)]
    while trying.poll() is None:
        seen.append(tables(network))
    assert trying.returncode == 0
    assert [found for found in seen if "inet gatewayfilter\n" in found] == []


def test_the_doctor_sees_the_gateway(network: Network) -> None:
    ill = doctor(network)
    assert [ill[name] for name in ("firewall", "forwarding", "QUIC")] == ["error"] * 3
    up(network)
    well = doctor(network)
    names = ("firewall", "forwarding", "IPv6", "QUIC", "workers", "learner", "port", "certificate authority", "database")
    assert {name: well[name] for name in names} == dict.fromkeys(names, "ok")
    assert well["DNS"] == "error"  # no DNS server in here, really
    assert network.cli("doctor").returncode == 1


def test_a_regular_proxy_is_found_by_pac_and_what_goes_around_it_is_refused(network: Network) -> None:
    network.stop_filter()
    network.environment["GATEWAYFILTER_PROXY__MODE"] = "regular"
    network.environment["GATEWAYFILTER_PROXY__LISTEN"] = f"{BOX[4]}:{PORT}"
    network.environment["GATEWAYFILTER_GATEWAY__BYPASS"] = "bank.example"
    network.start_filter()
    try:
        pac = network.say("fetch", BOX[4], f"{BOX[4]}:{PORT}", "/proxy.pac", "", PORT)
        assert (pac["status"], pac["filter"]) == (200, "setup")
        assert re.findall(r'"(PROXY [^"]*)"', pac["text"]) == [f"PROXY {BOX[4]}:{PORT}"]
        assert '".bank.example"' in pac["text"]
        page = network.say("fetch", BOX[4], f"{BOX[4]}:{PORT}", "/", "", PORT)
        assert f"http://{BOX[4]}:{PORT}/proxy.pac" in page["text"]
        done = network.cli("gateway", "up")
        assert done.returncode == 0, done.stderr
        for family in (4, 6):
            assert network.ask(family, "site.example")["error"] == "ConnectionRefusedError"
        through = network.say("fetch", BOX[4], "site.example", f"http://{SITE[4]}/page", "", PORT)
        assert through["status"] == 200
    finally:
        network.stop_filter()


def test_a_device_that_has_not_logged_in_gets_the_pac_file_and_no_site(network: Network) -> None:
    network.stop_filter()
    users = network.folder / "users"
    users.write_text(f"kim:{PasswordHash.of('secret')}\n")
    users.chmod(0o600)
    network.environment["GATEWAYFILTER_PROXY__MODE"] = "regular"
    network.environment["GATEWAYFILTER_PROXY__LISTEN"] = f"{BOX[4]}:{PORT}"
    network.environment["GATEWAYFILTER_PROXY__AUTH_FILE"] = str(users)
    network.start_filter()
    try:
        for path in ("/", "/proxy.pac", "/ca.cer"):
            assert network.say("reached", BOX[4], PORT, f"{BOX[4]}:{PORT}", path)["status"] == 200
        assert network.say("reached", BOX[4], PORT, "gatewayfilter.internal", "http://gatewayfilter.internal/")["status"] == 200
        assert network.say("reached", BOX[4], PORT, "site.example", "http://site.example/")["status"] == 407
    finally:
        network.stop_filter()

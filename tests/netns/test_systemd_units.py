"""The shipped systemd units under a real systemd, with their whole sandbox."""

from collections.abc import Iterator

import pytest

from tests.netns.netns_network import until
from tests.netns.systemd_box import Box, systemd_box, why_no_systemd

pytestmark = pytest.mark.real
FILTER, RULES = "gatewayfilter.service", "gatewayfilter-gateway.service"


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    """Booted; the filter runs."""
    if reason := why_no_systemd():
        pytest.skip(reason)
    with systemd_box(tmp_path_factory.mktemp("systemd")) as made:
        made.systemctl("start", FILTER)  # ends when the filter says that it is ready
        yield made


def journal(box: Box, unit: str) -> str:
    return box.run("journalctl", "--no-pager", "-o", "cat", "-u", unit).stdout


def test_the_units_are_sound(box: Box) -> None:
    done = box.run("systemd-analyze", "verify", f"/etc/systemd/system/{FILTER}", f"/etc/systemd/system/{RULES}")
    assert (done.returncode, done.stderr) == (0, "")
    for unit, most in ((FILTER, 20), (RULES, 30)):  # tenths: up to 2 is "ok" for a service without rights, 3 with one
        done = box.run("systemd-analyze", "security", "--offline=yes", f"--threshold={most}", f"/etc/systemd/system/{unit}")
        assert done.returncode == 0, done.stdout


def test_started_means_that_all_workers_serve(box: Box) -> None:
    assert box.shown(FILTER, "StatusText") == "filtering on [::]:8080"
    assert box.shown(FILTER, "NRestarts") == "0"
    assert "no proxy worker" not in journal(box, FILTER)
    state = box.run("cat", "/var/lib/gatewayfilter/run/proxy-0.json").stdout
    assert '"state": "serving"' in state
    assert box.run("stat", "-c", "%U %a", "/var/lib/gatewayfilter").stdout == "gatewayfilter 700\n"


def test_a_supervisor_that_hangs_is_replaced(box: Box) -> None:
    box.run("mkdir", "-p", f"/run/systemd/system/{FILTER}.d")
    box.run("sh", "-c", f"printf '[Service]\\nWatchdogSec=10\\nRestartSec=0\\n' > /run/systemd/system/{FILTER}.d/soon.conf")
    box.systemctl("daemon-reload")
    box.systemctl("restart", FILTER)
    first = box.shown(FILTER, "MainPID")
    box.run("kill", "-STOP", first)
    until("another supervisor", lambda: box.shown(FILTER, "MainPID") not in {"0", first}, 120)
    until("its readiness", lambda: box.shown(FILTER, "ActiveState") == "active", 120)
    assert box.shown(FILTER, "NRestarts") == "1"
    assert "Watchdog timeout" in journal(box, FILTER)
    box.run("rm", "-r", f"/run/systemd/system/{FILTER}.d")
    box.systemctl("daemon-reload")
    box.systemctl("restart", FILTER)


def test_the_rules_are_loaded_kept_and_taken_back(box: Box) -> None:
    box.systemctl("start", RULES)
    until("rules", lambda: "inet gatewayfilter" in box.run("nft", "list", "tables").stdout)
    until("gateway", lambda: "The gateway is up." in journal(box, RULES))
    assert box.run("sysctl", "-n", "net.ipv4.ip_forward").stdout == "1\n"
    box.run("nft", "flush", "ruleset")
    until("rules again", lambda: "inet gatewayfilter" in box.run("nft", "list", "tables").stdout)
    until("word of it", lambda: "loaded again" in journal(box, RULES))
    box.systemctl("stop", FILTER)  # fail closed: the rules stay
    assert "inet gatewayfilter" in box.run("nft", "list", "tables").stdout
    box.systemctl("stop", RULES)
    assert box.run("nft", "list", "tables").stdout == ""
    assert box.run("sysctl", "-n", "net.ipv4.ip_forward").stdout == "0\n"
    assert box.shown(RULES, "Result") == "success"
    box.systemctl("start", FILTER)


def test_squids_group_may_use_the_socket_of_its_helpers(box: Box) -> None:
    socket, settings = "/run/gatewayfilter/squid/helper.sock", f"/run/systemd/system/{FILTER}.d"
    box.run("usermod", "-aG", "proxy", "gatewayfilter")
    box.run("mkdir", "-p", settings)
    names = f"Environment=GATEWAYFILTER_HELPER__SOCKET={socket} GATEWAYFILTER_HELPER__GROUP=proxy"
    box.run("sh", "-c", f"printf '[Service]\\n{names}\\n' > {settings}/squid.conf")
    box.systemctl("daemon-reload")
    box.systemctl("restart", FILTER)
    until("the socket", lambda: box.run("stat", "-c", "%U:%G %a", socket).stdout == "gatewayfilter:proxy 660\n")
    helper = f"/usr/local/lib/gatewayfilter/bin/gatewayfilter helper squid --on-error block --socket {socket}"
    line = "192.0.2.7 - GET http://allowed.example/ - - -"
    ask = ["setpriv", "--reuid=proxy", "--regid=proxy", "--clear-groups", "sh", "-c", f"echo '{line}' | {helper}"]
    until("an answer", lambda: box.run(*ask).stdout.startswith("OK"))  # it blocks what is not answered in time
    box.run("rm", "-r", settings)
    box.systemctl("daemon-reload")


def test_stopping_drains_and_is_a_success(box: Box) -> None:
    box.systemctl("stop", FILTER)
    assert box.shown(FILTER, "Result") == "success"  # neither killed nor timed out
    assert box.run("sh", "-c", "ls /var/lib/gatewayfilter/run").stdout.split() == []
    box.systemctl("start", FILTER)

"""The interfaces as they are now: read at once, followed, and kept when the kernel does not answer."""

import logging
import os
import shutil
import socket
import subprocess
import sys
from ipaddress import ip_address

import pytest

from gatewayfilter.addresses import link_watch
from gatewayfilter.addresses.kinds import Kind
from gatewayfilter.addresses.link_watch import LinkWatch, PerLinks, current_links, kind_of_text
from gatewayfilter.addresses.links import NO_LINKS, Links

ONE = Links(own=frozenset({ip_address("192.0.2.1")}))
TWO = Links(own=frozenset({ip_address("192.0.2.2")}))


def test_the_same_object_stays_while_nothing_changes() -> None:
    said = [ONE, Links(own=frozenset(ONE.own)), TWO]
    watch = LinkWatch(lambda: said.pop(0))
    assert watch.links is ONE
    watch.refresh()
    assert watch.links is ONE
    watch.refresh()
    assert watch.links is TWO


def test_what_was_read_stays_when_the_kernel_does_not_answer(caplog: pytest.LogCaptureFixture) -> None:
    fails = False

    def read() -> Links:
        if fails:
            raise OSError("busy")
        return ONE

    watch = LinkWatch(read)
    fails = True
    with caplog.at_level(logging.WARNING):
        watch.refresh()
        watch.refresh()
    assert watch.links is ONE
    assert len(caplog.records) == 1


def test_results_hold_while_the_interfaces_stay_the_same() -> None:
    now = [ONE]
    asked: list[str] = []

    def work_out(text: str, links: Links) -> Kind:
        asked.append(text)
        return kind_of_text(text, links)

    kind = PerLinks(work_out, lambda: now[0])
    assert [kind("192.0.2.1"), kind("192.0.2.1"), kind("192.0.2.2")] == [Kind.OWN, Kind.OWN, Kind.PRIVATE]
    assert asked == ["192.0.2.1", "192.0.2.2"]
    now[0] = TWO
    assert [kind("192.0.2.1"), kind("192.0.2.2"), kind("nonsense")] == [Kind.PRIVATE, Kind.OWN, Kind.OWN]


def test_results_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_watch, "_MOST_REMEMBERED", 3)
    kind = PerLinks(kind_of_text, lambda: NO_LINKS)
    for number in range(20):
        kind(f"10.0.0.{number}")
        assert len(kind._known) <= 3


def test_this_machine_is_known() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        assert current_links().is_own(ip_address(probe.getsockname()[0]))
    assert current_links() is current_links()


_FOLLOW = """
import subprocess, sys, time
from ipaddress import ip_address
from gatewayfilter.addresses.link_watch import current_links
new = ip_address("2001:db8:77::5")
assert not current_links().is_near(new)
for step in (["link", "add", "gf0", "type", "veth", "peer", "name", "gf1"], ["link", "set", "gf0", "up"],
             ["address", "add", "2001:db8:77::1/64", "dev", "gf0", "nodad"]):
    subprocess.run(["ip", *step], check=True)
until = time.monotonic() + 20
while not current_links().is_near(new) and time.monotonic() < until:
    time.sleep(0.05)
print(current_links().is_near(new), current_links().is_own(ip_address("2001:db8:77::1")))
"""


def test_an_address_that_comes_later_is_heard_of() -> None:
    if os.geteuid() != 0 or shutil.which("unshare") is None or shutil.which("ip") is None:
        pytest.skip("needs root, unshare and ip")
    attempt = ["unshare", "-n", "ip", "link", "add", "gf0", "type", "veth", "peer", "name", "gf1"]
    if subprocess.run(attempt, capture_output=True, check=False, timeout=10).returncode:
        pytest.skip("the kernel does not let us")
    done = subprocess.run(
        ["unshare", "-n", sys.executable, "-c", _FOLLOW], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout == "True True\n", done.stderr

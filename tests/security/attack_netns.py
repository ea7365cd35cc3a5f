"""The attack on a transparent gateway: client, gateway and origin in network namespaces of their own, web traffic redirected.

One thread moves between the namespaces; a socket and a process stay in the one that they were made in.
"""

import asyncio
import os
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import trustme

from tests.netns.netns_network import run
from tests.security.attack_run import NAMES, Plan, Report, attack_site, product
from tests.security.lenient_origin import LenientOrigin

SITE: Final = "203.0.113.10"
_ABSENT: Final = "203.0.113.99"
_PORT: Final = 8080
_REDIRECT: Final = f"""
table inet attack {{
  chain prerouting {{
    type nat hook prerouting priority dstnat
    iifname "lan0" tcp dport {{ 80, 443 }} redirect to :{_PORT}
  }}
}}
"""


@contextmanager
def _namespaces() -> Iterator[dict[str, str]]:
    """Makes three namespaces, joined as a LAN and an uplink. Yields their names."""
    names = {what: f"gf-attack-{what}-{os.getpid()}" for what in ("client", "gateway", "origin")}
    with ExitStack() as stack:
        for name in names.values():
            run("ip", "netns", "add", name)
            stack.callback(subprocess.run, ["ip", "netns", "del", name], check=False)
            run("ip", "-n", name, "link", "set", "lo", "up")
        for what, near_end, far, near in (
            ("client", "lan0", "192.168.78.2", "192.168.78.1"), ("origin", "wan0", SITE, "203.0.113.1"),
        ):  # fmt: skip
            cable = ["type", "veth", "peer", "name", near_end, "netns", names["gateway"]]
            run("ip", "link", "add", "eth0", "netns", names[what], *cable)
            for name, end, address in ((names[what], "eth0", far), (names["gateway"], near_end, near)):
                run("ip", "-n", name, "address", "add", f"{address}/24", "dev", end)
                run("ip", "-n", name, "link", "set", end, "up")
            run("ip", "-n", names[what], "route", "add", "default", "via", near)
        inside = ["ip", "netns", "exec", names["gateway"]]
        subprocess.run([*inside, "nft", "-f", "-"], input=_REDIRECT, text=True, check=True, timeout=20)
        run(*inside, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        yield names


def _enter(name: str) -> None:
    handle = os.open(f"/run/netns/{name}", os.O_RDONLY)
    try:
        os.setns(handle, os.CLONE_NEWNET)
    finally:
        os.close(handle)


def _in_a_thread[T](work: Callable[[], T]) -> T:
    """Runs something in a thread of its own, which may leave this namespace for good."""
    found: list[T] = []
    failed: list[BaseException] = []

    def target() -> None:
        try:
            found.append(work())
        except BaseException as error:  # noqa: BLE001  it is raised again where somebody waits
            failed.append(error)

    thread = threading.Thread(target=target)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return found[0]


def attack_transparent(plan: Plan) -> Report:
    """Attacks the filter as a transparent gateway. Returns what was found."""
    authority = trustme.CA()
    names = {name: SITE if address == "127.0.0.1" else _ABSENT for name, address in NAMES.items()}

    def work(namespaces: dict[str, str], folder: Path) -> Report:
        async def inside() -> Report:
            _enter(namespaces["origin"])
            async with LenientOrigin(authority, SITE, (80, 443)).running() as origin:
                _enter(namespaces["client"])
                return await attack_site(plan, gateway, origin, SITE, None)

        _enter(namespaces["gateway"])
        settings = {"proxy__mode": "transparent", "proxy__listen": f"0.0.0.0:{_PORT}", "proxy__unknown": plan.unknown}
        with product(folder, authority, names, **settings) as gateway:
            return asyncio.run(inside())

    with _namespaces() as namespaces, tempfile.TemporaryDirectory(prefix="gf-attack-") as made:
        return _in_a_thread(lambda: work(namespaces, Path(made)))

"""squid with our decisions in it, beside bare squid and squidGuard: requests a second and CPU, in turns, on loopback.

    python scripts/bench/bench_squid_helper.py [--requests N] [--rounds N] [--http] [--per-connection N]

One client with 32 connections asks for pages of 4 KB whose URLs do not repeat, one document with 19 parts, as a browser asks. A
connection is kept for four requests, as in `bench_browsing.py`, where a page has 61 requests to 15 hosts; with
`--per-connection 0` for all, so that there is nothing but requests. nginx is the origin; squid runs in one process without a
cache, with ssl-bump and HTTPS on both sides, or with --http for plain HTTP. The filter has 200,000 blocked hosts, squidGuard the
same; our decisions are logged. Ratios are those of rounds that follow each other, so that other work on the machine meets both.
squid is one thread: its own CPU bounds the requests/s where the machine has cores for the others. Where it has not, the CPU of
all processes does, client and origin included: the last column has that of bare squid by that of the road, which the ratio of
requests/s comes to where nothing else runs. Needs root, squid-openssl, nginx and python3; squidGuard where it is installed.
"""

import argparse
import contextlib
import itertools
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import trustme
from bench_proxy import free_port
from filter_process import Filter
from proxy_load import Origin, drive, origin

from tests.e2e.e2e_gateway import until
from tests.e2e.squid_process import Squid, helper_line, running_squid, shared_folder

HOSTS = 200_000
DESTINATIONS = ("document", "style", "style", *["script"] * 6, *["image"] * 10, "empty")
BODY = b"x" * 4_000  # as long as a text in nginx's configuration may be
ACL = (
    "external_acl_type gf ttl={ttl} negative_ttl={ttl} children-max=1 children-startup=1 concurrency=200 "
    "%>a %un %>rm %URI %>ha{{Referer}} %>ha{{Sec-Fetch-Dest}} %>ha{{Accept}} {helper}\n"
    "acl gf_allows external gf\nhttp_access deny !gf_allows\n"
)
TUNNELS = "acl tunnels method CONNECT\n"
REWRITE = (
    "url_rewrite_program {helper}\nurl_rewrite_children 1 startup=1 concurrency=200\n"
    'url_rewrite_extras "%>a/- %un %>rm ref=%#>ha{{Referer}} dest=%#>ha{{Sec-Fetch-Dest}} accept=%#>ha{{Accept}}"\n'
)


@dataclass(slots=True)
class Road:
    """A way through squid, and what its rounds took."""

    name: str
    squid: Squid
    beside: Sequence[psutil.Process] = ()
    rates: list[float] = field(default_factory=list)
    cpu_us: list[tuple[float, ...]] = field(default_factory=list)
    ends_us: list[float] = field(default_factory=list)

    def cpu_s(self) -> tuple[float, ...]:
        """CPU of squid, of its helpers and of our daemon so far."""
        main = psutil.Process(self.squid.process.pid)
        return tuple(
            sum(sum(one.cpu_times()[:2]) for one in some) for some in ([main], main.children(recursive=True), self.beside)
        )


def _squidguard(folder: Path, domains: Path) -> str:
    (folder / "db").mkdir()
    shutil.copy(domains, folder / "db" / "domains")
    (folder / "squidGuard.conf").write_text(
        f"dbhome {folder}/db\nlogdir {folder}\ndest bad {{ domainlist domains }}\n"
        "acl { default { pass !bad all redirect http://blocked.invalid/ } }\n"
    )
    subprocess.run(
        ["squidGuard", "-b", "-c", folder / "squidGuard.conf", "-C", "all"],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    for path in (folder / "db", *(folder / "db").iterdir()):
        path.chmod(0o777)
    return f"url_rewrite_program {shutil.which('squidGuard')} -c {folder}/squidGuard.conf\nurl_rewrite_children 4 startup=4\n"


@contextlib.contextmanager
def _roads(room: Path, daemon: psutil.Process, domains: Path, authority: Path | None, origin_ca: Path) -> Iterator[list[Road]]:
    with contextlib.ExitStack() as stack:

        def road(name: str, lines: str, beside: Sequence[psutil.Process] = ()) -> Road:
            squid = running_squid(stack.enter_context(shared_folder()), lines, authority, origin_ca)
            return Road(name, stack.enter_context(squid), beside)

        acl, rewrite = (helper_line(room, room / "helper.sock", f"--protocol={name}") for name in ("acl", "rewrite"))
        found = [
            road("squid alone", ""),
            road("external_acl, every request asked", ACL.format(ttl=0, helper=acl), [daemon]),
            road("url_rewrite, every request asked", REWRITE.format(helper=rewrite), [daemon]),
        ]
        if authority is not None:
            lines = ACL.format(ttl=0, helper=acl).replace("deny !gf_allows", "deny !tunnels !gf_allows")
            found.append(road("external_acl, requests inside tunnels asked", TUNNELS + lines, [daemon]))
            lines = f"{TUNNELS}url_rewrite_access deny tunnels\n{REWRITE.format(helper=rewrite)}"
            found.append(road("url_rewrite, requests inside tunnels asked", lines, [daemon]))
        if shutil.which("squidGuard"):
            found.append(road("squidGuard, 4 processes", _squidguard(stack.enter_context(shared_folder()), domains)))
        yield found


def main() -> None:
    """Reads the options and measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=4_000, help="of a round")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--http", action="store_true", help="plain HTTP")
    parser.add_argument("--per-connection", type=int, default=4, help="requests over one connection; 0 for any number")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, shared_folder() as room:
        folder = Path(name)
        folder.chmod(0o755)
        certificate = folder / "origin.pem"
        origin_ca, own_ca = trustme.CA(key_type=trustme.KeyType.ECDSA), trustme.CA(key_type=trustme.KeyType.ECDSA)
        origin_ca.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(str(certificate))
        origin_ca.cert_pem.write_to_path(str(room / "origin-ca.pem"))
        own_ca.private_key_pem.write_to_path(str(room / "own.pem"))
        own_ca.cert_pem.write_to_path(str(room / "own.pem"), append=True)
        own_ca.cert_pem.write_to_path(str(room / "own-ca.pem"))
        for file in room.iterdir():
            file.chmod(0o644)
        domains = folder / "domains"
        domains.write_text("".join(f"host{number}.blocked.example\n" for number in range(HOSTS)))
        settings = {"GATEWAYFILTER_HELPER__SOCKET": str(room / "helper.sock"), "GATEWAYFILTER_HELPER__GROUP": "proxy"}
        running = Filter(folder / "state", "--workers", "1", settings=settings)
        running.command("source", "add", str(domains), "--format", "domains", "--category", "ads")
        running.start()
        try:
            until("the socket", (room / "helper.sock").exists, 60)
            until("its status", (folder / "state" / "run" / "integration.json").exists, 60)
            daemon = psutil.Process(_daemon_of(folder / "state"))
            with (
                origin(folder / "nginx", [free_port(), free_port()], certificate, BODY) as site,
                _roads(room, daemon, domains, None if options.http else room / "own.pem", room / "origin-ca.pem") as roads,
            ):
                ca = None if options.http else room / "own-ca.pem"
                _measure(roads, site, ca, options)
        finally:
            running.stop()


def _daemon_of(state: Path) -> int:
    import json  # noqa: PLC0415  once

    return int(json.loads((state / "run" / "integration.json").read_text())["pid"])


def _measure(roads: list[Road], site: Origin, ca: Path | None, options: argparse.Namespace) -> None:
    port = site.ports[0 if options.http else 1]
    numbers, requests = itertools.count(), options.requests
    for round_ in range(options.rounds + 1):
        for road in roads if round_ % 2 else reversed(roads):
            paths = [f"/{next(numbers)}/page.html?q={number}" for number in range(requests)]
            before, origin_before = road.cpu_s(), site.cpu_s()
            took = drive(
                int(road.squid.address.rpartition(":")[2]),
                port,
                requests,
                ca,
                paths=paths,
                size=len(BODY),
                destinations=DESTINATIONS,
                per_connection=options.per_connection,
            )
            if round_:  # the first one warms up
                road.rates.append(requests / took.seconds)
                road.ends_us.append((took.cpu_s + site.cpu_s() - origin_before) / requests * 1e6)
                road.cpu_us.append(tuple((now - then) / requests * 1e6 for now, then in zip(road.cpu_s(), before, strict=True)))
    bare = roads[0]
    print("| road | requests/s | to bare squid | squid's own CPU, µs a request | to bare squid | helpers | daemon | CPU of all |")
    print("|---|---|---|---|---|---|---|---|")
    whole = [[sum(part) + ends for part, ends in zip(road.cpu_us, road.ends_us, strict=True)] for road in roads]
    for road, mine in zip(roads, whole, strict=True):
        ratio = statistics.median(one / other for one, other in zip(road.rates, bare.rates, strict=True))
        squid, helpers, daemon = (statistics.median(part) for part in zip(*road.cpu_us, strict=True))
        own = statistics.median(one[0] / other[0] for one, other in zip(road.cpu_us, bare.cpu_us, strict=True))
        by_cpu = statistics.median(other / one for one, other in zip(mine, whole[0], strict=True))
        print(
            f"| {road.name} | {statistics.median(road.rates):,.0f} | {ratio:.2f} | {squid:.0f} | {own:.2f} "
            f"| {helpers:.0f} | {daemon:.0f} | {by_cpu:.2f} |"
        )


if __name__ == "__main__":
    main()

"""Our decisions inside Debian's squid with ssl-bump: external_acl and url_rewrite, the daemon killed, first visits handed on."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from tests.e2e.e2e_gateway import GatewayProcess, Origin, until
from tests.e2e.squid_process import fetch, helper_line, needs_squid, running_squid, shared_folder

pytestmark = [pytest.mark.real, needs_squid, pytest.mark.timeout(300)]

ACL = (
    "external_acl_type gatewayfilter ttl=0 negative_ttl=0 children-max=2 children-startup=1 concurrency=100 "
    "%>a %un %>rm %URI %>ha{{Referer}} %>ha{{Sec-Fetch-Dest}} %>ha{{Accept}} {helper}\n"
    "acl gatewayfilter_allows external gatewayfilter\n"
    "deny_info 302:http://blocked.invalid/?url=%u&reason=%o gatewayfilter_allows\n"
    "http_access deny !gatewayfilter_allows\n"
)
REWRITE = (
    "url_rewrite_program {helper}\nurl_rewrite_children 2 startup=1 concurrency=100\n"
    'url_rewrite_extras "%>a/- %un %>rm ref=%#>ha{{Referer}} dest=%#>ha{{Sec-Fetch-Dest}} accept=%#>ha{{Accept}}"\n'
)


PATIENT = "--timeout-ms=20000"
"""A helper that waits for an answer of the daemon on a machine that is busy with other things."""


def named(site: Origin) -> str:
    """Its address by a name: squid's certificates do not hold addresses as such."""
    return site.base.replace("127.0.0.1", "localhost")


@pytest.fixture(scope="module")
def room() -> Iterator[Path]:
    with shared_folder() as folder:
        yield folder


@pytest.fixture(scope="module")
def filter_(
    tmp_path_factory: pytest.TempPathFactory, room: Path, http_site: Origin, https_site: Origin
) -> Iterator[GatewayProcess]:
    state = tmp_path_factory.mktemp("squid") / "state"
    settings = {"helper__socket": str(room / "helper.sock"), "helper__group": "proxy", "proxy__workers": "1"}
    with GatewayProcess(state, **settings) as running:
        rules = [
            f"{base}/{path}" for base in (http_site.base, named(https_site)) for path in ("casino/*", "spaced%20name?a=%2Fb")
        ]
        assert running.cli("list", "add", "--block", *rules).returncode == 0
        until("the daemon's socket", (room / "helper.sock").exists)
        running.await_rules("integration")
        yield running


@pytest.fixture(scope="module")
def authorities(room: Path, authority: trustme.CA) -> tuple[Path, Path]:
    """Key and certificate that squid signs by, and the certificate of the origin's authority."""
    (room / "squid-ca.pem").write_bytes(authority.private_key_pem.bytes() + authority.cert_pem.bytes())
    (room / "origin-ca.pem").write_bytes(authority.cert_pem.bytes())
    return room / "squid-ca.pem", room / "origin-ca.pem"


@pytest.mark.parametrize(("protocol", "lines"), [("acl", ACL), ("rewrite", REWRITE)])
def test_squid_blocks_what_the_filter_blocks(
    protocol: str,
    lines: str,
    filter_: GatewayProcess,
    room: Path,
    authorities: tuple[Path, Path],
    http_site: Origin,
    https_site: Origin,
) -> None:
    page = "http://filter.example/blocked"
    options = (f"--protocol={protocol}", "--on-error=block", f"--block-url={page}", PATIENT)
    configuration = lines.format(helper=helper_line(room, room / "helper.sock", *options))
    with shared_folder() as folder, running_squid(folder, configuration, *authorities) as squid:
        for base, ca in ((http_site.base, None), (named(https_site), authorities[1])):
            assert fetch(squid, f"{base}/garden/1", ca) == (200, ""), squid.log()
            status, place = fetch(squid, f"{base}/casino/3", ca)
            assert status == 302, squid.log()
            assert place.startswith("http://blocked.invalid/?")
            assert "manual-block" in place
            assert fetch(squid, f"{base}/spaced%20name?a=%2Fb", ca)[0] == 302
            assert fetch(squid, f"{base}/spaced%20name?a=/b", ca)[0] == 404
        until("log records", lambda: len(urls := _logged(filter_)) >= 6 and f"{http_site.base}/casino/3" in urls)
        until("a crawl of the unknown page", lambda: http_site.crawls("/garden/1"), 30)


def _logged(filter_: GatewayProcess) -> list[str]:
    return [json.loads(line)["url"] for line in filter_.cli("log", "search", "--limit", "200", "--json").stdout.splitlines()]


def test_a_daemon_that_ends_is_found_again(filter_: GatewayProcess, room: Path, http_site: Origin) -> None:
    configuration = ACL.format(helper=helper_line(room, room / "helper.sock", "--on-error=block", PATIENT))
    with shared_folder() as folder, running_squid(folder, configuration) as squid:
        assert fetch(squid, f"{http_site.base}/garden/2")[0] == 200
        daemon = filter_.child("integration")
        assert filter_.process is not None
        filter_.process.send_signal(signal.SIGSTOP)  # it starts no other one before somebody has asked
        try:
            daemon.kill()
            until("a block while it is away", lambda: fetch(squid, f"{http_site.base}/garden/2")[0] == 302)
        finally:
            filter_.process.send_signal(signal.SIGCONT)
        until("the decision of the next daemon", lambda: fetch(squid, f"{http_site.base}/garden/2")[0] == 200, 40)
        assert fetch(squid, f"{http_site.base}/casino/4")[0] == 302


def test_a_daemon_that_hangs_and_goes_on_harms_nothing(filter_: GatewayProcess, room: Path, http_site: Origin) -> None:
    configuration = ACL.format(helper=helper_line(room, room / "helper.sock", "--on-error=block", "--timeout-ms=5000"))
    with shared_folder() as folder, running_squid(folder, configuration) as squid:
        assert fetch(squid, f"{http_site.base}/garden/3")[0] == 200
        daemon = filter_.child("integration")
        daemon.suspend()
        try:
            assert fetch(squid, f"{http_site.base}/garden/3")[0] == 302
            assert fetch(squid, f"{http_site.base}/garden/3")[0] == 302
        finally:
            daemon.resume()
        until("a decision", lambda: fetch(squid, f"{http_site.base}/garden/3")[0] == 200, 40)
        assert [fetch(squid, f"{http_site.base}/{kind}/6")[0] for kind in ("casino", "garden", "casino")] == [302, 200, 302]
        assert squid.process.poll() is None


def test_without_a_daemon_requests_are_allowed_where_set_so(room: Path, http_site: Origin) -> None:
    for protocol, lines in (("acl", ACL), ("rewrite", REWRITE)):
        options = (f"--protocol={protocol}", "--on-error=allow")
        configuration = lines.format(helper=helper_line(room, room / "nobody.sock", *options))
        with shared_folder() as folder, running_squid(folder, configuration) as squid:
            assert fetch(squid, f"{http_site.base}/casino/5")[0] == 200, squid.log()

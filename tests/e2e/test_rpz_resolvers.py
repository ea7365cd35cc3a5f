"""Real resolvers with the zone of a running filter: unbound by address, BIND with a key, Knot Resolver by the file."""

import base64
import os
import shutil
import socket
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.e2e_gateway import GatewayProcess, free_port, until

UNBOUND = shutil.which("unbound", path="/usr/sbin:/usr/bin")
NAMED = shutil.which("named", path="/usr/sbin:/usr/bin")
KRESD = shutil.which("kresd", path="/usr/sbin:/usr/bin")
pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

NO_ERROR, NXDOMAIN = 0, 3
SECRET = base64.b64encode(b"a secret of resolver and filter").decode()


def code(port: int, name: str) -> int:
    """The response code of a resolver for a name, -1 for no answer."""
    question = b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0\0\1\0\1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(15)  # a port where nobody listens refuses at once
        client.connect(("127.0.0.1", port))
        try:
            client.send(struct.pack(">HHHHHH", 9, 0x0100, 1, 0, 0, 0) + question)
            return client.recv(4_096)[3] & 0xF
        except OSError:
            return -1


def write_test_zone(folder: Path) -> None:
    """A zone `test` in which every name has an address."""
    text = "$ORIGIN test.\n$TTL 5\n@ SOA localhost. root.localhost. 1 5 5 5 5\n@ NS localhost.\n* A 192.0.2.1\n"
    (folder / "test.zone").write_text(text)


@contextmanager
def resolver(command: list[str], folder: Path, port: int) -> Iterator[None]:
    with (folder / "resolver.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    try:
        until("the resolver", lambda: code(port, "harmless.test") == NO_ERROR or _ended(process, folder), 60)
        yield
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _ended(process: subprocess.Popen[bytes], folder: Path) -> bool:
    if process.poll() is not None:
        raise AssertionError((folder / "resolver.log").read_text()[-3_000:])
    return False


@contextmanager
def filter_over(folder: Path, port: int, notify: int, **settings: str) -> Iterator[GatewayProcess]:
    blocked = folder / "blocked.txt"
    blocked.write_text("listed.test\nwide.test\n")
    wanted = {"rpz__listen": f"127.0.0.1:{port}", "rpz__notify": f"127.0.0.1:{notify}", "proxy__workers": "1", **settings}
    running = GatewayProcess(folder / "state", **wanted)
    assert running.cli("source", "add", str(blocked), "--format", "domains", "--category", "ads", timeout_s=200).returncode == 0
    with running:
        until("the zone's server", lambda: _listens(port), 60)
        yield running


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _walk(running: GatewayProcess, port: int, counted: str) -> None:
    """Lists, then rules by the command line, as a resolver sees them; then notices and this are counted."""
    until("the lists in the resolver", lambda: code(port, "listed.test") == NXDOMAIN, 60)
    assert code(port, "deep.wide.test") == NXDOMAIN
    assert code(port, "harmless.test") == NO_ERROR
    assert running.cli("list", "add", "--block", "||manual.test^").returncode == 0
    until("a block in the resolver", lambda: code(port, "www.manual.test") == NXDOMAIN, 30)
    assert running.cli("list", "add", "--allow", "||wide.test^").returncode == 0
    until("an allow in the resolver", lambda: code(port, "deep.wide.test") == NO_ERROR, 30)
    assert running.cli("list", "remove", "||manual.test^").returncode == 0
    until("the end of the block", lambda: code(port, "www.manual.test") == NO_ERROR, 30)
    for name in ("rpz_notified", counted):
        until(name, lambda name=name: running.status("integration").get("counters", {}).get(name, 0) >= 1)  # type: ignore[misc]


@pytest.mark.skipif(UNBOUND is None, reason="needs unbound")
def test_unbound_follows_the_zone(tmp_path: Path) -> None:
    port, zone_port = free_port(), free_port()
    write_test_zone(tmp_path)
    (tmp_path / "unbound.conf").write_text(
        f'server:\n  interface: 127.0.0.1@{port}\n  do-daemonize: no\n  username: ""\n  chroot: ""\n  directory: "{tmp_path}"\n'
        f'  pidfile: "{tmp_path}/pid"\n  use-syslog: no\n  module-config: "respip iterator"\n  do-not-query-localhost: no\n'
        '  local-zone: "test." nodefault\n'
        "remote-control:\n  control-enable: no\n"
        f'auth-zone:\n  name: "test"\n  zonefile: "{tmp_path}/test.zone"\n  for-downstream: no\n  for-upstream: yes\n'
        f"rpz:\n  name: gatewayfilter.rpz\n  primary: 127.0.0.1@{zone_port}\n  allow-notify: 127.0.0.1\n"
    )
    assert UNBOUND is not None
    command = [UNBOUND, "-d", "-c", str(tmp_path / "unbound.conf")]
    with filter_over(tmp_path, zone_port, port) as running, resolver(command, tmp_path, port):
        _walk(running, port, "rpz_increments")


@pytest.mark.skipif(NAMED is None or os.geteuid() != 0, reason="needs BIND and root")
def test_bind_follows_the_zone_with_a_key_and_reads_the_file(tmp_path: Path) -> None:
    port, zone_port = free_port(), free_port()
    write_test_zone(tmp_path)
    (tmp_path / "named.conf").write_text(
        f'key "gateway.key" {{ algorithm hmac-sha256; secret "{SECRET}"; }};\ncontrols {{ }};\n'
        f'options {{ directory "{tmp_path}"; listen-on port {port} {{ 127.0.0.1; }}; listen-on-v6 {{ none; }}; recursion yes;\n'
        f'  pid-file "{tmp_path}/pid"; session-keyfile none; dnssec-validation no; empty-zones-enable no;\n'
        '  response-policy { zone "gatewayfilter.rpz"; } qname-wait-recurse no min-update-interval 0; };\n'
        f'zone "test" {{ type primary; file "{tmp_path}/test.zone"; }};\n'
        f'zone "gatewayfilter.rpz" {{ type secondary; primaries port {zone_port} {{ 127.0.0.1 key "gateway.key"; }};'
        f' file "{tmp_path}/rpz.db"; }};\n'
    )
    assert NAMED is not None
    file = tmp_path / "exported.zone"
    settings = {
        "rpz__tsig_name": "gateway.key",
        "rpz__tsig_secret": SECRET,
        "rpz__file": str(file),
        "rpz__reload": f"touch,{tmp_path}/reloaded",
    }
    with (
        filter_over(tmp_path, zone_port, port, **settings) as running,
        resolver([NAMED, "-g", "-c", str(tmp_path / "named.conf")], tmp_path, port),
    ):
        _walk(running, port, "rpz_increments")
        until("the allow in the file", lambda: file.exists() and "*.wide.test CNAME rpz-passthru." in file.read_text(), 30)
        until("the reload", (tmp_path / "reloaded").exists, 30)
        checked = shutil.which("named-checkzone", path="/usr/sbin:/usr/bin")
        if checked is not None:
            assert subprocess.run([checked, "gatewayfilter.rpz", str(file)], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(KRESD is None, reason="needs Knot Resolver")
def test_knot_resolver_follows_the_file(tmp_path: Path) -> None:
    port = free_port()
    file = tmp_path / "exported.zone"
    (tmp_path / "kresd.conf").write_text(
        f"net.listen('127.0.0.1', {port}, {{ kind = 'dns' }})\ncache.open(10 * MB, 'lmdb://{tmp_path}/cache')\n"
        f"policy.add(policy.rpz(policy.DENY, '{file}', true))\n"
        "policy.add(policy.suffix(policy.PASS, policy.todnames({ 'test.' })))\n"  # which no policy of its own denies
        "modules.load('hints > iterate')\n"
        + "".join(f"hints['{name}.test'] = '192.0.2.1'\n" for name in ("harmless", "deep.wide", "www.manual"))
    )
    assert KRESD is not None
    with filter_over(tmp_path, free_port(), port, rpz__file=str(file)) as running:
        until("the file", file.exists, 60)
        with resolver([KRESD, "-n", "-c", str(tmp_path / "kresd.conf"), str(tmp_path)], tmp_path, port):
            _walk(running, port, "rpz_files")

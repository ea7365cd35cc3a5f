"""The Debian package on a bare Debian: the guide's commands, word for word, end with a filtering box and a filtering gateway."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.netns.netns_network import until
from tests.packages.bare_debian import BareDebian, bare_debian, commands_of

pytestmark = [pytest.mark.packages, pytest.mark.real, pytest.mark.timeout(600)]
ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs/install.md"
STATE = "/var/lib/gatewayfilter"
BLOCKED = "http://blocked.gatewayfilter.test/"


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package that `make deb` built, and one of a later version in a folder of its own."""
    found = sorted((ROOT / "dist").glob("gatewayfilter_*.deb"))
    if not found:
        pytest.skip("needs make deb")
    folder = tmp_path_factory.mktemp("packages")
    shutil.copy(found[-1], folder)
    return folder


@pytest.fixture(scope="module")
def box(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BareDebian]:
    """Booted; nothing is installed."""
    bare = Path(os.environ.get("GATEWAYFILTER_BARE_DEBIAN", ROOT / ".cache/bare-debian"))
    if os.geteuid() != 0 or not (bare / ".made").exists():
        pytest.skip("needs root and scripts/packages/make-bare-debian")
    if "overlay" not in Path("/proc/filesystems").read_text():
        pytest.skip("the kernel has no overlay file system")
    with bare_debian(tmp_path_factory.mktemp("box"), bare, packages) as made:
        yield made


def test_the_package_installs_filters_gates_and_goes(box: BareDebian) -> None:
    """One test: each step stands on the one before, as on a real machine."""
    first, listening, checking = commands_of(GUIDE, "box")
    box.type(first)
    assert box.systemctl("is-enabled", "gatewayfilter") == "enabled"
    assert box.run("stat", "-c", "%U %a", STATE).stdout == "gatewayfilter 700\n"
    assert box.run("stat", "-c", "%U %G %a", "/etc/gatewayfilter.toml").stdout == "root gatewayfilter 640\n"
    assert box.type(listening).splitlines()[-1] == "403"
    assert box.from_client("-x", "http://192.168.77.1:8080", BLOCKED) == "403"
    for command in checking.splitlines():
        checked = box.try_to(command)  # without internet, lists and names are findings
    assert "✓ workers:" in checked.stdout, checked.stdout + checked.stderr
    assert "✓ state folder:" in checked.stdout
    for unit, most in (("gatewayfilter", 20), ("gatewayfilter-gateway", 30)):
        path = f"/usr/lib/systemd/system/{unit}.service"
        sound = box.run("systemd-analyze", "verify", path)
        assert (sound.returncode, sound.stderr) == (0, "")
        assert box.run("systemd-analyze", "security", "--offline=yes", f"--threshold={most}", path).returncode == 0
    _becomes_a_gateway(box)
    _is_upgraded_and_not_set_back(box)
    _is_removed_and_purged(box)


def _becomes_a_gateway(box: BareDebian) -> None:
    (gating,) = commands_of(GUIDE, "gateway")
    box.type(gating)
    until("rules", lambda: "inet gatewayfilter" in box.run("nft", "list", "tables").stdout, 120)
    redirected = ("--resolve", "blocked.gatewayfilter.test:80:203.0.113.7", BLOCKED)
    until("the block page", lambda: box.from_client(*redirected) == "403", 120)


def _is_upgraded_and_not_set_back(box: BareDebian) -> None:
    box.type("gatewayfilter list add --block kept.example")
    box.type(
        "dpkg-deb -R gatewayfilter_*.deb later && sed -i 's/^Version: .*/Version: 99/' later/DEBIAN/control"
        " && sed -i 's/^version=.*/version=99/' later/DEBIAN/preinst && dpkg-deb -Znone -b later later.deb >/dev/null"
        " && apt-get install -y ./later.deb"
    )
    assert box.type("dpkg-query -W -f '${Version}' gatewayfilter") == "99"
    assert box.systemctl("is-active", "gatewayfilter") == "active"
    assert "kept.example" in box.type("gatewayfilter list show")
    back = "apt-get install -y --allow-downgrades ./gatewayfilter_*.deb"
    refused = box.try_to(back)
    assert refused.returncode != 0
    assert "gatewayfilter db rollback" in refused.stderr + refused.stdout
    assert box.systemctl("is-active", "gatewayfilter") == "active"
    box.type(f"env GATEWAYFILTER_ALLOW_DOWNGRADE=1 {back}")
    assert "kept.example" in box.type("gatewayfilter list show")


def _is_removed_and_purged(box: BareDebian) -> None:
    box.type("apt-get remove -y gatewayfilter")
    assert box.run("nft", "list", "tables").stdout == ""
    assert box.run("test", "-e", "/usr/lib/gatewayfilter").returncode == 1
    assert box.run("test", "-e", f"{STATE}/gatewayfilter.sqlite3").returncode == 0
    assert box.run("test", "-e", f"{STATE}/ca/mitmproxy-ca.pem").returncode == 0
    box.type("apt-get purge -y gatewayfilter")
    for path in (STATE, "/etc/gatewayfilter.toml"):
        assert box.run("test", "-e", path).returncode == 1
    assert box.run("getent", "passwd", "gatewayfilter").returncode == 2


def test_the_package_holds_no_path_of_its_build_machine(packages: Path, tmp_path: Path) -> None:
    (package,) = packages.glob("*.deb")
    subprocess.run(["dpkg-deb", "-R", str(package), str(tmp_path / "tree")], check=True)
    tree = tmp_path / "tree"
    assert (tree / "DEBIAN/conffiles").read_text() == "/etc/gatewayfilter.toml\n"
    home = tree / "usr/lib/gatewayfilter"
    assert str((home / "bin/python").readlink()).startswith("/usr/bin/python3.")
    line = ["grep", "-rlaF", "-e", f"{ROOT}/gatewayfilter", "-e", "/tmp/tmp.", str(home)]
    traces = subprocess.run(line, check=False, capture_output=True, text=True)
    assert traces.stdout == ""
    assert not list(home.rglob("direct_url.json"))

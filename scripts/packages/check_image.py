"""Builds the container image by buildah, without Docker and without a registry, and runs it as compose.yaml does.

    python scripts/packages/check_image.py BARE_DEBIAN STORE

The image's user, a read-only root file system, one volume and /tmp, no capabilities, a network of its own. Needs root, buildah,
curl and a bare Debian (scripts/packages/make-bare-debian), which takes the place of the image that the Dockerfile names, with
Debian's Python.
"""

import contextlib
import json
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
_BASE: Final = "localhost/debian-python"
_BUNDLE: Final = "/etc/ssl/certs/ca-certificates.crt"
_BASE_FILE: Final = """FROM scratch
ADD bare.tar /
RUN apt-get -qq update && apt-get -qq -y install --no-install-recommends python3 ca-certificates >/dev/null
"""
_INSIDE: Final = r"""
ip link set lo up
mount --bind "$root" "$root"
mount -o remount,ro,bind "$root"
mount -t tmpfs tmpfs "$root/tmp"
mount -t tmpfs -o mode=0700,uid="$uid",gid="$uid" tmpfs "$root$volume"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
inside() {
    chroot "$root" /usr/bin/setpriv --reuid="$uid" --regid="$uid" --clear-groups --no-new-privs \
        --inh-caps=-all --bounding-set=-all "$@"
}
inside env -i $settings $command >"$log" 2>&1 &
for _ in $(seq 240); do
    grep -q "filtering on" "$log" && break
    sleep 0.25
done
grep -q "filtering on" "$log" || { cat "$log"; exit 1; }
status=$(curl -s -o /dev/null -w '%{http_code}' -x http://127.0.0.1:8080 http://blocked.gatewayfilter.test/)
[ "$status" = 403 ] || { echo "a blocked page is answered $status"; exit 1; }
eval "inside env -i $settings $healthy" || { echo "the health check fails"; exit 1; }
if inside touch /opt/gatewayfilter/written 2>/dev/null; then echo "the root file system is writable"; exit 1; fi
"""


class Buildah:
    """Buildah on a store of its own.

    Args:
        store: where images lie, for the next time too.
        run: a folder for what lies there while it runs.
    """

    def __init__(self, store: Path, run: Path) -> None:
        self._command = ["buildah", "--root", str(store), "--runroot", str(run), "--storage-driver", "vfs"]

    def __call__(self, *arguments: str) -> str:
        """Returns what it printed.

        Raises:
            SystemExit: it failed; with its output.
        """
        done = subprocess.run([*self._command, *arguments], capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"buildah {arguments[0]}: {done.stdout}\n{done.stderr}")
        return done.stdout.strip()

    def has(self, image: str) -> bool:
        """Returns whether an image is there."""
        return (
            subprocess.run([*self._command, "inspect", "--type", "image", image], capture_output=True, check=False).returncode
            == 0
        )

    def config(self, image: str) -> dict[str, Any]:
        """Returns the settings of an image."""
        found: dict[str, Any] = json.loads(self("inspect", "--type", "image", image))["Docker"]["config"]
        return found

    @contextlib.contextmanager
    def mounted(self, image: str) -> Iterator[Path]:
        """Gives the root file system of a container."""
        container = self("from", image)
        try:
            yield Path(self("mount", container))
        finally:
            self("rm", container)


def build(buildah: Buildah, bare: Path, work: Path) -> None:
    """Builds the image `gatewayfilter` of the last commit, on a Debian with Python."""
    if not buildah.has(_BASE):
        base = work / "base"
        base.mkdir()
        subprocess.run(["tar", "-C", bare, "--exclude=./var/cache/apt/archives", "-cf", base / "bare.tar", "."], check=True)
        (base / "Dockerfile").write_text(_BASE_FILE)
        buildah("bud", "-q", "--isolation", "chroot", "-t", _BASE, str(base))
        shutil.rmtree(base)
    tree = work / "tree"
    tree.mkdir()
    archive = subprocess.run(["git", "-C", ROOT, "archive", "HEAD"], stdout=subprocess.PIPE, check=True)
    subprocess.run(["tar", "-x", "-C", tree], input=archive.stdout, check=True)
    # pip trusts in there what this machine trusts, and asks where this machine asks.
    index = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True, check=False
    ).stdout.strip()
    (work / "pip.conf").write_text("[global]\ncert = /run/bundle.pem\n" + (f"index-url = {index}\n" if index else ""))
    buildah(
        *("bud", "-q", "--isolation", "chroot", "--format", "docker", "--build-arg", f"BASE={_BASE}", "-t", "gatewayfilter"),
        *("--volume", f"{work / 'pip.conf'}:/etc/pip.conf:ro", "--volume", f"{_BUNDLE}:/run/bundle.pem:ro"),
        *("-f", str(tree / "deploy/container/Dockerfile"), str(tree)),
    )


def run(root: Path, config: dict[str, Any], log: Path) -> None:
    """Runs the filter of an image, and asks it for a blocked page.

    Raises:
        SystemExit: the image is not as it should be.
    """
    user, (volume,) = config["User"], config["Volumes"]
    uid, _, gid = user.partition(":")
    if not uid.isdecimal() or uid == "0" or uid != gid:
        raise SystemExit(f"the image runs as {user}")
    left = [name for name in ("pip", "hatchling", "cython", "cythonize") if (root / "opt/gatewayfilter/bin" / name).exists()]
    if left:
        raise SystemExit(f"part of the image is {left}")
    kind, *healthy = config["Healthcheck"]["Test"]
    assert kind == "CMD"
    told = {
        "root": str(root),
        "uid": uid,
        "volume": volume,
        "log": str(log),
        "settings": " ".join(config["Env"]),
        "command": " ".join([*config["Entrypoint"], *config["Cmd"]]),
        "healthy": shlex.join(healthy),
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    }
    namespaces = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--propagation", "private"]
    if subprocess.run([*namespaces, "sh", "-euc", _INSIDE], env=told, check=False).returncode:
        raise SystemExit("the container does not do what it should")


def main() -> None:
    """Builds, runs and reports."""
    bare, store = map(Path, sys.argv[1:])
    with tempfile.TemporaryDirectory(prefix="image-") as name:
        work = Path(name)
        buildah = Buildah(store.absolute(), work / "run")
        build(buildah, bare, work)
        with buildah.mounted("gatewayfilter") as root:
            run(root, buildah.config("gatewayfilter"), work / "run.log")
            size = sum(path.lstat().st_size for path in (root / "opt/gatewayfilter").rglob("*"))
    print(
        "The image was built and runs without root and without capabilities, on a read-only root file system: a blocked page is "
        f"answered 403, and the health check succeeds. The program takes {size / 1e6:.0f} MB of it."
    )


if __name__ == "__main__":
    main()

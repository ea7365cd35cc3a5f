"""The wheel and the source archive: whole, the same from both, and in use in an environment that holds nothing else."""

import json
import os
import subprocess
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.e2e.e2e_gateway import until

pytestmark = [pytest.mark.packages, pytest.mark.real, pytest.mark.timeout(300)]
ROOT = Path(__file__).parents[2]
INSTALLED = ROOT / ".cache/installed"


def listening(state: Path) -> str:
    """Returns the address on which a filter serves, empty before."""
    try:
        found = json.loads((state / "run/supervisor.json").read_text())
    except (OSError, ValueError):
        return ""
    return str(found["listen"]) if found.get("state") == "running" else ""


def only(pattern: str) -> Path:
    found = sorted((ROOT / "dist").glob(pattern))
    if not found:
        pytest.skip("needs make dist")
    (path,) = found
    return path


def tracked(*folders: str) -> set[str]:
    """Returns the files of the checkout below some folders, as they are to be found in a wheel."""
    listed = subprocess.run(["git", "ls-files", *folders], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    moved = {name.replace("lists/", "gatewayfilter/bundled/", 1) if name.startswith("lists/") else name for name in listed}
    return {name for name in moved if not name.endswith((".pyx", ".pxd"))}


def test_the_wheel_holds_all_that_it_needs_and_no_more() -> None:
    with zipfile.ZipFile(only("gatewayfilter-*.whl")) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name and not name.endswith((".so", "/"))}
        content = b"".join(wheel.read(name) for name in wheel.namelist())
    assert names == tracked("gatewayfilter", "lists", "addons")
    assert f"{ROOT}/gatewayfilter".encode() not in content


def test_the_source_archive_holds_what_builds_it() -> None:
    with tarfile.open(only("gatewayfilter-*.tar.gz")) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"hatch_build.py", "pyproject.toml", "LICENSE", "README.md", "lists/catalog.toml", "Makefile"} <= names
    assert not [name for name in names if name.startswith((".venv", "dist", ".cache")) or name.endswith(".so")]


def test_wheels_for_others_are_built_by_a_recipe() -> None:
    recipe = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["cibuildwheel"]
    assert "gatewayfilter check" in recipe["test-command"]


@pytest.fixture
def installed() -> Path:
    command = INSTALLED / "bin/gatewayfilter"
    if not command.exists():
        pytest.skip("needs scripts/packages/make-installed")
    return command


def test_the_installed_wheel_filters(installed: Path, tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("GATEWAYFILTER_", "PYTHON"))}
    line = [str(installed), "--data-dir", str(tmp_path / "checked"), "check", "http://blocked.gatewayfilter.test/"]
    checked = subprocess.run(line, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment, timeout=120)
    assert checked.returncode == 1
    assert "starter-test" in checked.stdout
    state = tmp_path / "state"
    log = (tmp_path / "log").open("w")
    run = [str(installed), "--data-dir", str(state), "run", "--listen", "127.0.0.1:0", "--workers", "1", "--no-web"]
    process = subprocess.Popen(run, stdout=log, stderr=log, cwd=tmp_path, env=environment)
    try:
        until("readiness", lambda: process.poll() is not None or listening(state), 180)
        line = ["curl", "-s", "-i", "-m", "60", "-x", f"http://{listening(state)}", "http://blocked.gatewayfilter.test/"]
        page = subprocess.run(line, capture_output=True, text=True, check=False).stdout
    finally:
        process.terminate()
        assert process.wait(60) == 0
        log.close()
    assert page.startswith("HTTP/1.1 403")
    assert "starter-test" in page

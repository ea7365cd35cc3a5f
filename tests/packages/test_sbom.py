"""The bill of materials: each installed package of the lock file, with its licence and hashes, and the same each time."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_bill_names_each_package_with_licence_and_hashes() -> None:
    line = [sys.executable, str(ROOT / "scripts/packages/sbom.py")]
    first, second = (subprocess.run(line, capture_output=True, text=True, check=True).stdout for _ in range(2))
    assert first == second
    made = json.loads(first)
    by_name = {component["name"]: component for component in made["components"]}
    assert {"mitmproxy", "numpy", "sqlalchemy", "cryptography", "fastapi"} <= set(by_name)
    assert all(component["properties"] for component in by_name.values())
    known = [component["licenses"][0]["license"]["name"] != "unknown" for component in by_name.values()]
    assert sum(known) >= 0.95 * len(known)
    licences = subprocess.run([*line, "--licences"], capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(licences) == len(by_name)

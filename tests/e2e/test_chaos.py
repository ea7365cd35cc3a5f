"""Random kills and other faults for some seconds: the short form of `make chaos`, in namespaces where they are allowed."""

import subprocess
import sys
from pathlib import Path

import pytest

_CHECKOUT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_random_faults_open_nothing_and_lose_nothing() -> None:
    chaos = [
        sys.executable,
        "-m",
        "tests.e2e.chaos",
        "--brief",
        "--kills",
        "4",
        "--rounds",
        "1",
        "--minutes",
        "15",
        "--seed",
        "19",
    ]
    done = subprocess.run(chaos, cwd=_CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "no fault"
    assert "4 kills in" in done.stdout
    assert "'no origin': 1" in done.stdout

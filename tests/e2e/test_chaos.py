"""Random kills and other faults for some seconds: the short form of `make chaos`, in namespaces where they are allowed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.chaos_faults import FAULTS

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
    assert re.search(r"^4 kills in", done.stdout, re.MULTILINE), done.stdout
    assert re.search(r"^[1-9]\d* exchanges, ", done.stdout, re.MULTILINE), done.stdout
    inflicted, _, left_out = done.stdout.partition(" other faults: ")[2].partition("; left out: ")
    for fault in FAULTS:
        if fault.brief and not (fault.boxed and repr(fault.name) in left_out):
            assert f"{fault.name!r}: 1" in inflicted, done.stdout

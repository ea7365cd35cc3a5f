"""How long it takes until killed parts of the scale-out are made good: runs the tests that kill them, prints a table.

Needs what `make test-services` needs. Times have the load of the machine in them: it is printed.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree as ET  # read from our own test run

TESTS = (
    "tests/scaleout/stream/worker/test_consumer.py::test_a_killed_worker_and_a_killed_broker_are_made_good",
    "tests/scaleout/spark/test_job.py::test_a_killed_driver_loses_nothing_and_counts_nothing_twice",
    "tests/scaleout/spark/test_job.py::test_a_killed_executor_is_replaced_and_each_record_is_decided_once",
    "tests/scaleout/redis/test_shared_queue.py::test_a_master_that_is_killed_loses_nothing_that_was_acknowledged",
    "tests/e2e/test_two_machines.py::test_two_machines_fetch_each_page_once_and_one_that_is_killed_loses_nothing",
    "tests/fleet/test_fleet_way.py::test_a_publisher_killed_in_a_transfer_and_a_follower_too",
    "tests/processes/sharing/test_decisions.py",
    "tests/processes/sharing/test_sync.py",
    "tests/scaleout/kafka/test_crawl_over_kafka.py::test_kills_lose_nothing_and_store_nothing_twice",
)


def main() -> int:
    """Runs the tests and prints what they measured. Returns the exit code of pytest."""
    root = Path(__file__).parents[2]
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        options = ["-q", "-p", "no:randomly", "-p", "no:cacheprovider", "-o", "junit_family=xunit1"]
        command = [sys.executable, "-m", "pytest", *TESTS, *options, f"--junitxml={report}"]
        code = subprocess.run(command, cwd=root, check=False, stdout=sys.stderr).returncode
        rows = [
            str(found.get("value")).split(" | ")
            for found in ET.parse(report).iter("property")
            if found.get("name") == "recovery"
        ]  # fmt: skip
    print(f"load average {before:.1f} before, {os.getloadavg()[0]:.1f} after\n")
    print("| what is killed (-9) | until | s |\n|---|---|---|")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    return code


if __name__ == "__main__":
    sys.exit(main())

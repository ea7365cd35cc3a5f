"""From `gatewayfilter run` to the first filtered request: on an empty state folder and on one that is there already.

Each with and without the dashboard, by turns.
"""

import socket
import statistics
import sys
import tempfile
import time
from pathlib import Path

from filter_process import Filter

ROUNDS = 5
DASHBOARD = {"without dashboard": "", "with dashboard": "127.0.0.1:0"}
TARGET = b"GET http://blocked.gatewayfilter.test/ HTTP/1.1\r\nHost: blocked.gatewayfilter.test\r\nConnection: close\r\n\r\n"


def start_s(state: Path, listen: str) -> float:
    """Returns the seconds from starting the command to the end of its first block page; `listen` is the dashboard's address."""
    filter_ = Filter(state, settings={"GATEWAYFILTER_WEB__LISTEN": listen})
    began = time.monotonic()
    filter_.start()
    with socket.create_connection((filter_.host, filter_.port)) as connection:
        connection.sendall(TARGET)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    elapsed_s = time.monotonic() - began
    filter_.stop()
    if not answer.startswith(b"HTTP/1.1 403"):
        raise SystemExit("the first request was not filtered")
    return elapsed_s


def main() -> int:
    """Prints the medians as a Markdown table."""
    found: dict[tuple[str, str], list[float]] = {}
    for _ in range(ROUNDS):
        for name, listen in DASHBOARD.items():
            with tempfile.TemporaryDirectory() as folder:
                state = Path(folder) / "state"
                for which in ("first, empty state folder", "later"):
                    found.setdefault((which, name), []).append(start_s(state, listen))
    print("| start | dashboard | median s | slowest s | budget s |\n|---|---|---|---|---|")
    for (which, name), times in sorted(found.items()):
        print(f"| {which} | {name} | {statistics.median(times):.2f} | {max(times):.2f} | 3 |")
    return 0


if __name__ == "__main__":
    sys.exit(main())

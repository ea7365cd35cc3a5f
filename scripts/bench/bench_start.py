"""From `gatewayfilter run` to the first filtered request: on an empty state folder and on one that is there already."""

import socket
import statistics
import sys
import tempfile
import time
from pathlib import Path

from filter_process import Filter

ROUNDS = 5
TARGET = b"GET http://blocked.gatewayfilter.test/ HTTP/1.1\r\nHost: blocked.gatewayfilter.test\r\nConnection: close\r\n\r\n"


def start_s(state: Path) -> float:
    """Returns the seconds from starting the command to the last byte of its first block page."""
    filter_ = Filter(state)
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
    first, again = [], []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as name:
            state = Path(name) / "state"
            first.append(start_s(state))
            again.append(start_s(state))
    print("| start | median s | slowest s | budget s |\n|---|---|---|---|")
    print(f"| first, empty state folder | {statistics.median(first):.2f} | {max(first):.2f} | 3 |")
    print(f"| later | {statistics.median(again):.2f} | {max(again):.2f} | 3 |")
    return 0


if __name__ == "__main__":
    sys.exit(main())

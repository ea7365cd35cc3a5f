"""From `gatewayfilter run` to the first filtered request: on an empty state folder and on one that is there already."""

import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 5
TARGET = b"GET http://blocked.gatewayfilter.test/ HTTP/1.1\r\nHost: blocked.gatewayfilter.test\r\nConnection: close\r\n\r\n"


def start_s(state: Path) -> float:
    """Returns the seconds from starting the command to the last byte of its first block page."""
    environment = {**os.environ, "GATEWAYFILTER_DATA_DIR": str(state), "GATEWAYFILTER_LOG__LEVEL": "warning"}
    command = [str(Path(sys.executable).with_name("gatewayfilter")), "run", "--listen", "127.0.0.1:0"]
    began = time.monotonic()
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.search(r"filtering on (\S+):(\d+)", process.stdout.readline())
        assert found
        with socket.create_connection((found[1], int(found[2]))) as connection:
            connection.sendall(TARGET)
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        assert answer.startswith(b"HTTP/1.1 403")
        elapsed_s = time.monotonic() - began
        process.terminate()
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

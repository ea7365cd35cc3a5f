"""What a logged decision costs: CPU to write it in batches, and bytes on disk, its index included."""

import sys
import tempfile
import time
from pathlib import Path

from gatewayfilter.model import LogRecord
from gatewayfilter.store import Store

RECORDS = 20_000
BATCH = 500


def record(number: int, path: str) -> LogRecord:
    """Returns a decision as the proxy logs it."""
    url = f"https://site{number % 500}.example/{path}{number}"
    return LogRecord(
        1.7e9 + number, "192.0.2.7", "GET", url, "script", "block", "adblock", "easylist", "||site.example^", "ads", 12
    )


def main() -> int:
    """Prints the table."""
    print(f"| {RECORDS:,} decisions, URLs of | CPU µs each | bytes each |\n|---|---|---|")
    for path in ("", "a/path/of/some/length?with=a&query=of-its-own&and=more" * 2):
        with tempfile.TemporaryDirectory() as name:
            file = Path(name) / "log.sqlite3"
            store = Store.open(f"sqlite:///{file}")
            records = [record(number, path) for number in range(RECORDS)]
            began = time.process_time()
            for start in range(0, RECORDS, BATCH):
                store.log.write(records[start : start + BATCH])
            cpu_us = (time.process_time() - began) / RECORDS * 1e6
            store.close()
            size = file.stat().st_size / RECORDS
        print(f"| {len(records[-1].url)} characters | {cpu_us:.1f} | {size:.0f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Removal without a rebuild: learned entries leave a snapshot of millions, and the file that follows is written and verified.

    python scripts/bench/bench_removal.py [--entries 5000000] [--leaving 100000]

CPU and wall seconds from the open snapshot and its counters to the new file in use, as a Markdown table; the change feed is not
read (bench_publish.py has the whole publication).
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from bench_publish import learned

from gatewayfilter.engine.snapshot.folder import SnapshotFolder
from gatewayfilter.engine.snapshot.patch import patch_snapshot
from gatewayfilter.engine.snapshot.reader import Snapshot, SnapshotBuilder
from gatewayfilter.model import LearnedEntry, Source
from gatewayfilter.urls import digest_of

SEED = 20160301


def main(argv: Sequence[str] | None = None) -> int:
    """Prints a Markdown table. Returns 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=5_000_000)
    parser.add_argument("--leaving", type=int, default=100_000)
    options = parser.parse_args(argv)
    builder = SnapshotBuilder()
    others = np.random.default_rng(SEED).integers(0, 256, (options.entries - options.leaving, 16), dtype=np.uint8)
    builder.add_digests(builder.add_source(Source("lists")), others)
    entries = [learned(number) for number in range(options.leaving)]
    builder.add_learned(entries)
    with TemporaryDirectory(prefix="bench-removal-") as place:
        folder = SnapshotFolder(Path(place))
        with folder.publishing() as put_into_use:
            path = put_into_use(builder.image(counting=True))
            del builder
            old = Snapshot.open(path, verify=True)
            counters = folder.counters_of(path, old.mark)
            leaving: dict[bytes, LearnedEntry | None] = {digest_of(entry.key): None for entry in entries}
            cpu, wall = time.process_time(), time.perf_counter()
            image = patch_snapshot(old, counters, leaving, [], feed_seq=1, created_at=time.time())
            patched_cpu, patched_wall = time.process_time() - cpu, time.perf_counter() - wall
            path = put_into_use(image)
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        new = Snapshot.open(path)
        assert new.info.blacklist == len(others)
        assert (new.blacklist.find_many(others) == 0).all()
        assert new.bloom.ask_many(others).all()
        gone = np.frombuffer(b"".join(leaving), np.uint8).reshape(-1, 16)
        assert (new.blacklist.find_many(gone) == -1).all()
        assert new.bloom.ask_many(gone).mean() < 0.002
        print(f"{options.leaving:,} of {options.entries:,} entries leave:\n")
        print("| step | CPU s | wall s |\n|---|---|---|")
        print(f"| tables, records, counters and gate changed | {patched_cpu:.2f} | {patched_wall:.2f} |")
        print(f"| the same, written, verified and in use | {cpu:.2f} | {wall:.2f} |")
        old.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Shared batches: one event for all readers with the same conditions, each record once for each."""

from contextlib import closing
from pathlib import Path

from gatewayfilter.model import LogQuery, LogRecord
from gatewayfilter.store import Store
from gatewayfilter.use_cases.traffic.live_log import LiveBatch, LiveLog
from gatewayfilter.use_cases.traffic.shared_batches import SharedBatches


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Writer:
    """Writes the numbers of a batch, and counts how often."""

    form = "numbers"

    def __init__(self) -> None:
        self.written = 0

    def write(self, batch: LiveBatch) -> str:
        self.written += 1
        return ",".join(str(number) for number, _ in batch.records)


def test_a_batch_is_written_once_for_all_readers(tmp_path: Path) -> None:
    clock, writer = Clock(), Writer()
    with closing(Store.open(f"sqlite:///{tmp_path / 'a.sqlite3'}")) as store:
        shared = SharedBatches(LiveLog(store.log, clock), most=2)
        reached = [shared.start()] * 5
        blocked, seen, rounds = shared.start(), [], 4
        for _ in range(rounds):
            clock.now += 1
            store.log.write(
                [
                    LogRecord(1e9, "192.0.2.1", "GET", "http://a.example/", "document", action, "unknown")
                    for action in ("allow", "block")
                ]
            )
            found = [shared.after(one, LogQuery(), writer) for one in reached]
            assert len(set(found)) == 1
            reached = [number for number, _ in found]
            seen += found[0][1].split(b",")
            blocked, of_blocked = shared.after(blocked, LogQuery(action="block"), writer)
            assert of_blocked == b"%d" % blocked
        assert seen == [b"%d" % number for number in range(1, 2 * rounds + 1)]
        assert writer.written == 2 * rounds
        assert shared.after(reached[0], LogQuery(), writer) == (reached[0], b": \n\n")

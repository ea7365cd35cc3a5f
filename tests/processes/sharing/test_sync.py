"""The processes that keep gateways in step, over a real Redis: within a second, and after kills of each."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.model import EntryKind, ListAction, ManualRule
from gatewayfilter.processes.entry_points import sync
from gatewayfilter.store import Store
from gatewayfilter.use_cases.process_facts import process_facts
from tests.scaleout.redis.redis_servers import Server, server, why_not

pytestmark = [
    pytest.mark.services, pytest.mark.real, pytest.mark.timeout(600), pytest.mark.skipif(bool(why_not()), reason=why_not()),
]  # fmt: skip


def until(condition: Callable[[], bool], what: str, limit_s: float = 120.0) -> float:
    """Waits for a condition. Returns the seconds that it took."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() < began + limit_s, what
        time.sleep(0.02)
    return time.monotonic() - began


class Gateway:
    """A state folder and its process."""

    def __init__(self, folder: Path, redis: Server) -> None:
        folder.mkdir()
        (folder / "fingerprints.key").write_bytes(b"k" * 32)
        self.settings = Settings.model_validate({"data_dir": folder, "sync": {"url": redis.url, "timeout_s": 0.5}})
        self.store = Store.open(self.settings.store_url)
        self.start()

    def start(self) -> None:
        self.process = multiprocessing.get_context("spawn").Process(target=sync, args=(self.settings,))
        self.process.start()

    def kill(self) -> None:
        assert self.process.pid is not None
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.join(10)

    def close(self) -> None:
        self.process.terminate()
        self.process.join(20)
        if self.process.is_alive():
            self.kill()
        self.store.close()

    def block(self, host: str) -> None:
        self.store.lists.add_rules([ManualRule(0, ListAction.BLOCK, EntryKind.DOMAIN, f".{host}")])

    def has(self, *hosts: str) -> bool:
        return {f".{host}" for host in hosts} <= {rule.pattern for rule in self.store.lists.rules()}

    def state(self) -> str:
        return str(process_facts(self.settings, "sync").get("state", ""))

    def gateways(self) -> int:
        return len(process_facts(self.settings, "sync").get("gateways", ()))


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as found:
        yield found


def test_gateways_are_in_step_through_kills_of_each(
    stack: ExitStack, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    (tmp_path / "redis").mkdir()
    redis = stack.enter_context(server(tmp_path / "redis", 0, "--appendonly", "yes", "--appendfsync", "always"))
    north, south = Gateway(tmp_path / "north", redis), Gateway(tmp_path / "south", redis)
    stack.callback(north.close)
    stack.callback(south.close)
    until(lambda: north.gateways() == south.gateways() == 2, "both hear of each other")
    took = []
    for number in range(5):
        north.block(f"h{number}.test")
        took.append(until(partial(south.has, f"h{number}.test"), "the rule arrives"))
    record_property("recovery", f"none: a rule is added at one gateway | it is at the other | {sorted(took)[2]:.2f}")

    south.kill()
    north.block("while-away.test")
    south.start()
    caught = until(lambda: south.has("while-away.test"), "a gateway that was killed catches up")
    record_property("recovery", f"process that keeps a gateway in step, started again | in step | {caught:.1f}")

    redis.kill()
    until(lambda: north.state() == south.state() == "away", "the outage is told")
    north.block("north-alone.test")
    south.block("south-alone.test")
    redis.start_again()
    both = ("north-alone.test", "south-alone.test")
    again = until(lambda: north.has(*both) and south.has(*both), "both catch up")
    record_property("recovery", f"Redis of gateways in step | both are in step, after its start | {again:.1f}")
    until(lambda: north.state() == south.state() == "in step", "the end of the outage is told")

    redis.client().flushall()  # all of it is lost: what gateways have comes back
    redis.client().close()
    south.block("after-loss.test")
    until(lambda: north.has("after-loss.test"), "the state was made again")
    south.kill()
    until(lambda: north.gateways() == 1, "a killed gateway is gone")

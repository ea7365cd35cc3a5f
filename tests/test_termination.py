"""SIGTERM in processes with an event loop, the end of the loop included."""

import asyncio
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from gatewayfilter.termination import calls_on_sigterm


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


async def test_the_callback_is_called() -> None:
    stop = asyncio.Event()
    with calls_on_sigterm(stop.set):
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(stop.wait(), 10)


def test_a_signal_while_the_loop_is_closed(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    class Loop(asyncio.SelectorEventLoop):
        def remove_signal_handler(self, sig: int) -> bool:  # called when the wake-up socket is closed
            os.kill(os.getpid(), signal.SIGTERM)
            return super().remove_signal_handler(sig)

    async def run() -> Any:
        with calls_on_sigterm(lambda: None):
            await asyncio.sleep(0)

    asyncio.run(run(), loop_factory=Loop)
    assert capfd.readouterr().err == ""
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL

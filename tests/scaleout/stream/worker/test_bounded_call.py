"""Calls that return, raise, or never end."""

import threading

import pytest

from gatewayfilter.scaleout.stream.worker.bounded_call import BoundedCall, StuckCallError


def test_a_call_returns_raises_or_is_given_up() -> None:
    done: list[int] = []
    BoundedCall(lambda: done.append(1)).within(60)
    assert done == [1]
    with pytest.raises(ZeroDivisionError):
        BoundedCall(lambda: 1 // 0).within(60)
    never = threading.Event()
    stuck = BoundedCall(never.wait)
    with pytest.raises(StuckCallError):
        stuck.within(0.01)
    assert stuck.daemon, "it does not keep the process from ending"
    never.set()

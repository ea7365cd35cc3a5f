import os

import pytest

from gatewayfilter.processes.low_priority import NICENESS, low_priority


@pytest.mark.parametrize("may_raise", [True, False])
@pytest.mark.parametrize("before", [0, 15])
def test_work_gives_way_and_goes_back_where_it_may(monkeypatch: pytest.MonkeyPatch, before: int, *, may_raise: bool) -> None:
    now = before

    def set_priority(which: int, who: int, priority: int) -> None:
        nonlocal now
        assert (which, who) == (os.PRIO_PROCESS, 0), "its own"
        if priority < now and not may_raise:
            raise PermissionError
        now = priority

    monkeypatch.setattr(os, "getpriority", lambda *whose: now if whose == (os.PRIO_PROCESS, 0) else 19)
    monkeypatch.setattr(os, "setpriority", set_priority)
    with low_priority():
        assert now == max(before, NICENESS)
    assert now == (before if may_raise else max(before, NICENESS))

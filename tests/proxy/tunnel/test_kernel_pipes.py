"""The pipes of a worker: how many, of which size, and none where a copy is the better way."""

import fcntl
import os

import pytest

from gatewayfilter.proxy.tunnel import kernel_pipes
from gatewayfilter.proxy.tunnel.kernel_pipes import Pipe, PipePool


def is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def test_a_pipe_that_was_emptied_is_lent_again_and_another_is_closed() -> None:
    pool = PipePool(in_kernel=True)
    first = pool.lend()
    assert first is not None
    assert (pool.lent, first.filled, first.size >= 131_072) == (1, 0, True)
    assert os.get_blocking(first.reading) is os.get_blocking(first.writing) is os.get_inheritable(first.reading) is False
    pool.take_back(first)
    assert (pool.lent, pool.idle) == (0, [first])
    assert pool.lend() is first
    assert pool.idle == []
    first.filled = 1
    pool.take_back(first)
    assert (pool.lent, pool.idle, is_open(first.reading), is_open(first.writing)) == (0, [], False, False)
    second = pool.lend()
    assert second is not None
    pool.take_back(second)
    pool.close()
    assert (pool.idle, is_open(second.reading), is_open(second.writing)) == ([], False, False)


def test_no_pipe_beyond_the_most_and_none_without_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_pipes, "_MOST_PIPES", 2)
    pool = PipePool(in_kernel=True)
    lent = [pool.lend() for _ in range(3)]
    assert [pipe is not None for pipe in lent] == [True, True, False]
    assert pool.lent == 2
    for pipe in lent[:2]:
        assert pipe is not None
        pool.take_back(pipe)
    pool.close()
    assert PipePool(in_kernel=False).lend() is None


def test_small_pipes_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Pipe] = []

    def sized(size: int) -> Pipe:
        pipe = Pipe()
        pipe.size = size
        made.append(pipe)
        return pipe

    monkeypatch.setattr(kernel_pipes, "Pipe", lambda: sized(131_072))
    enough = PipePool(in_kernel=True)
    assert enough.lend() is made[0]
    monkeypatch.setattr(kernel_pipes, "Pipe", lambda: sized(131_071))
    small = PipePool(in_kernel=True)
    assert small.lend() is None
    assert (small.lent, is_open(made[1].reading)) == (0, False)
    assert small.lend() is None
    assert len(made) == 2, "it is not tried again"
    made[0].close()


def test_without_descriptors_or_pipe_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*given: object) -> int:
        if given[1] == fcntl.F_SETPIPE_SZ:
            raise PermissionError
        return 65_536

    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "fcntl", refused)
        pipe = Pipe()
        assert pipe.size == 65_536
        pipe.close()

    def full(_flags: int) -> tuple[int, int]:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "pipe2", full)
    pool = PipePool(in_kernel=True)
    assert pool.lend() is None
    assert pool.lent == 0

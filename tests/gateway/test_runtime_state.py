"""The file with the state of a gateway: what is read back, who may read it, who holds its locks."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gatewayfilter.errors import GatewayError
from gatewayfilter.gateway.runtime_state import RuntimeState, RuntimeStateFile

FULL = RuntimeState(
    "d", "l", {"net/ipv4/ip_forward": "0", "net/ipv6/conf/wan0/accept_ra": "1"}, True, True, True, True, ("a", "b")
)


@pytest.fixture
def umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.parametrize("state", [RuntimeState(), FULL])
def test_what_is_written_is_read(tmp_path: Path, state: RuntimeState) -> None:
    RuntimeStateFile(tmp_path).write(state)
    assert RuntimeStateFile(tmp_path).read() == state


@pytest.mark.usefixtures("umask")
def test_all_may_read_it_and_its_owner_alone_may_write_it(tmp_path: Path) -> None:
    file = RuntimeStateFile(tmp_path / "run" / "gatewayfilter")
    file.write(FULL)
    file.write(RuntimeState())
    assert (file.path.stat().st_mode & 0o777, file.path.parent.stat().st_mode & 0o777) == (0o644, 0o755)
    assert [path.name for path in file.path.parent.iterdir()] == [file.path.name]
    locked = RuntimeStateFile(tmp_path / "var" / "run")
    with locked.changing(), locked.watching():
        assert locked.path.parent.stat().st_mode & 0o777 == 0o755


def test_it_is_forgotten_once_and_again(tmp_path: Path) -> None:
    file = RuntimeStateFile(tmp_path)
    file.write(FULL)
    for _ in range(2):
        file.forget()
        assert file.read() is None


def test_nobody_watches_where_there_is_no_lock(tmp_path: Path) -> None:
    assert RuntimeStateFile(tmp_path / "none").is_watched() is False
    file = RuntimeStateFile(tmp_path)
    with file.watching() as only:
        assert (only, file.is_watched()) == (True, True)
        with RuntimeStateFile(tmp_path).watching() as second:
            assert second is False
    assert file.is_watched() is False


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "run").touch()
    file = RuntimeStateFile(tmp_path / "run")
    with pytest.raises(GatewayError, match=r"^cannot write .*/run/gateway-\d+\.json: "):
        file.write(FULL)
    with pytest.raises(GatewayError, match=r"^cannot write .*\.lock: .*; run this as root$"), file.changing():
        pass

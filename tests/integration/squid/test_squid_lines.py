"""Lines of squid's helper protocols: requests read, answers written, whatever a client puts into them."""

import asyncio
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.errors import StartupError
from gatewayfilter.integration.squid.channels import GREETING, LONGEST_LINE, HelperProtocol
from gatewayfilter.integration.squid.daemon import SquidHelpers, open_socket
from tests.integration.integration_engine import Records, decider_over, engine

ACL, REWRITE = HelperProtocol.ACL, HelperProtocol.REWRITE
PAGE = "http://filter.test/blocked"
BLOCKED = f'OK status=302 url="{PAGE}?url=http%3A%2F%2Fblocked.test%2F&reason=blacklist&category=gambling&client=192.0.2.7"'


@pytest.fixture(scope="module")
def helpers(listed: FilterEngine) -> SquidHelpers:
    decider, counters = decider_over(listed, Records())
    return SquidHelpers(decider, counters, PAGE)


@pytest.mark.parametrize(
    ("protocol", "line", "answer"),
    [
        (ACL, "192.0.2.7 - GET http://garden.test/", "OK"),
        (ACL, "7 192.0.2.7 - GET http://garden.test/ - - text/html", "7 OK"),
        (ACL, "7 192.0.2.7 anna GET http://blocked.test/ -", "7 ERR message=blacklist%2Fgambling log=casinos"),
        (ACL, "0 192.0.2.7 - CONNECT blocked.test:443", "0 ERR message=blacklist%2Fgambling log=casinos"),
        (ACL, "9 192.0.2.7 - GET http%3A//blocked.test/", "9 ERR message=bad-request log=-"),
        (ACL, "9 192.0.2.7 - GET http://ads.test/", "9 ERR message=blacklist%2Fads log=ad%20servers"),
        (ACL, "9 too short", "9 ERR message=bad-request log=-"),
        (ACL, "", "ERR message=bad-request log=-"),
        (ACL, "99999999999 192.0.2.7 - GET http://garden.test/", "ERR message=bad-request log=-"),
        (REWRITE, "3 http://garden.test/ 192.0.2.7/- - GET myip=- myport=3128", "3 ERR"),
        (REWRITE, "3 http://blocked.test/ 192.0.2.7/- - GET ref=http://x.test/", f"3 {BLOCKED}"),
        (REWRITE, "http://blocked.test/ 192.0.2.7/pc.lan - GET", BLOCKED),
        (REWRITE, "5 nonsense", f'5 OK status=302 url="{PAGE}?reason=bad-request"'),
    ],
)
def test_each_line_gets_its_answer(helpers: SquidHelpers, protocol: HelperProtocol, line: str, answer: str) -> None:
    assert helpers.answers(protocol, [line.encode()]).decode() == f"{answer}\n"


FILTER = engine()


@given(
    st.lists(st.binary(max_size=200).filter(lambda line: b"\n" not in line), max_size=5), st.sampled_from(list(HelperProtocol))
)
def test_any_bytes_get_one_line_each_that_squid_can_read(lines: list[bytes], protocol: HelperProtocol) -> None:
    decider, counters = decider_over(FILTER, Records())
    answers = SquidHelpers(decider, counters, PAGE).answers(protocol, lines)
    assert answers.count(b"\n") == len(lines)
    assert answers.isascii()
    for line, answer in zip(lines, answers.splitlines(), strict=True):
        first, blank, _ = line.partition(b" ")
        if blank and first.isdigit() and len(first) <= 10:
            assert answer.startswith(first + b" ")
        assert answer.count(b'"') in {0, 2}
    assert counters["hook_errors"] == 0


def test_a_decision_that_fails_is_answered_as_set(listed: FilterEngine) -> None:
    decider, counters = decider_over(listed, Records())
    line = b"4 192.0.2.7 - GET http://garden.test/"
    for allows, answer in ((True, b"4 OK\n"), (False, b"4 ERR message=failure\n")):
        helpers = SquidHelpers(_Failing(), counters, allows_failures=allows)  # type: ignore[arg-type]
        assert helpers.answers(ACL, [line]) == answer
    assert counters["hook_errors"] == 2
    del decider


class _Failing:
    def decide(self, _: object) -> None:
        raise ZeroDivisionError


async def test_connections_are_bounded_and_closed_when_no_helper_speaks(helpers: SquidHelpers, tmp_path: Path) -> None:
    path = tmp_path / "helper.sock"
    server = await asyncio.get_running_loop().create_unix_server(helpers.connection, sock=open_socket(path, ""))
    assert path.stat().st_mode & 0o777 == 0o600
    async with server:
        reader, writer = await asyncio.open_unix_connection(str(path))
        writer.write(GREETING + b"acl\n1 192.0.2.7 - GET http://gar")
        await writer.drain()
        await asyncio.sleep(0)
        writer.write(b"den.test/\n2 192.0.2.7 - GET http://blocked.test/\n")
        assert await reader.readline() == b"1 OK\n"
        assert (await reader.readline()).startswith(b"2 ERR")
        writer.close()
        for hostile in (b"GET / HTTP/1.1\r\n\r\n", GREETING + b"icap\n", GREETING + b"acl\n" + bytes(LONGEST_LINE + 10)):
            reader, writer = await asyncio.open_unix_connection(str(path))
            writer.write(hostile)
            with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
                await reader.readexactly(1)
            writer.close()
        with pytest.raises(StartupError, match="another process serves it"):
            open_socket(path, "")
    path.unlink(missing_ok=True)


def test_a_socket_that_nothing_serves_is_replaced_and_a_file_is_not(tmp_path: Path) -> None:
    path = tmp_path / "helper.sock"
    open_socket(path, "").close()
    open_socket(path, "").close()
    path.unlink()
    path.write_text("mine")
    with pytest.raises(StartupError, match="no socket"):
        open_socket(path, "")
    assert path.read_text() == "mine"
    busy = tmp_path / "busy.sock"
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as waits:
        listener.bind(str(busy))
        listener.listen(0)
        waits.connect(str(busy))
        with pytest.raises(StartupError, match="cannot listen"):
            open_socket(busy, "")
    with pytest.raises(StartupError, match="there is no group"):
        open_socket(tmp_path / "other.sock", "no such group")

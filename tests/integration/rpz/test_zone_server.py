"""The server of the zone at its bounds: whom it serves, malformed queries, slow readers, how a transfer is cut into messages."""

import asyncio
import socket
import struct
from ipaddress import ip_network
from typing import Any

import pytest

from gatewayfilter.integration.rpz import messages as dns
from gatewayfilter.integration.rpz import server as server_module
from gatewayfilter.integration.rpz.server import RpzServer
from gatewayfilter.integration.rpz.tsig import TsigKey
from gatewayfilter.integration.rpz.zone import BaseNames, OwnNames, Target, Zone, ZoneHistory
from gatewayfilter.telemetry import Counters
from tests.integration.squid.squid_ends import comes

ZONE = b"\x02gf\x03rpz\0"


def history(names: int = 0, serial: int = 10) -> ZoneHistory:
    lines = sorted(f"test.{number}=\n" for number in range(names))
    return ZoneHistory(Zone(serial, BaseNames("".join(lines).encode()), OwnNames()))


def query(qtype: int, *, opcode: int = 0, zone: bytes = ZONE, serial: int | None = None) -> bytes:
    soa = b""
    if serial is not None:
        soa = b"\xc0\x0c" + struct.pack(">HHIHHIIIII", 6, 1, 0, 22, 0, serial, 1, 1, 1, 1)
    return struct.pack(">6H", 7, opcode << 11, 1, 0, bool(soa), 0) + zone + struct.pack(">HH", qtype, 1) + soa


async def answers(server: RpzServer, data: bytes) -> list[bytes]:
    return [message async for message in server._answers(data)]


def code(message: bytes) -> int:
    return message[3] & 0xF


@pytest.mark.parametrize(
    ("data", "answer"),
    [
        (b"\0\7\0", None),
        (b"\0\7" + bytes(9), None),
        (b"\0\7" + bytes(10), b"\0\7\x80\x01" + bytes(8)),
        (b"\0\7\x80" + bytes(9), None),
        (b"\0\7\x7f" + bytes(9), b"\0\7\x80\x01" + bytes(8)),
        (query(6)[:-1], b"\0\7\x80\x01" + bytes(8)),
        (query(6), struct.pack(">6H", 7, 0x8400, 1, 1, 0, 0) + ZONE + b"\0\6\0\1" + dns.soa(10)),
        (query(6, opcode=4), struct.pack(">6H", 7, 0xA404, 1, 0, 0, 0) + ZONE + b"\0\6\0\1"),
        (query(1), struct.pack(">6H", 7, 0x8405, 1, 0, 0, 0) + ZONE + b"\0\1\0\1"),
        (query(6, zone=b"\2xx\0"), struct.pack(">6H", 7, 0x8405, 1, 0, 0, 0) + b"\2xx\0\0\6\0\1"),
    ],
)
def test_a_datagram_gets_its_answer(data: bytes, answer: bytes | None) -> None:
    assert RpzServer("GF.rpz.", history(), Counters()).answer_datagram(data, "127.0.0.1") == answer


def test_resolvers_of_named_networks_are_served() -> None:
    counters = Counters()
    server = RpzServer("gf.rpz", history(), counters, [ip_network("192.0.2.0/24")])
    found = [server.answer_datagram(query(6), address) is not None for address in ("192.0.2.9", "192.0.3.9", "127.0.0.1", "::1")]
    assert found == [True, False, True, True]
    assert counters["rpz_refused"] == 1
    server.answer_datagram(query(1), "127.0.0.1")
    assert counters["rpz_refused"] == 2
    server.answer_datagram(query(6, opcode=5), "127.0.0.1")
    assert counters["rpz_refused"] == 2


async def test_a_transfer_is_cut_into_messages_of_sixteen_thousand_bytes() -> None:
    server = RpzServer("gf.rpz", history(3_000), Counters())
    found = await answers(server, query(252))
    head = 12 + len(ZONE) + 4
    sizes = [len(message) - head for message in found]
    assert all(16_000 <= size < 16_100 for size in sizes[:-1])
    assert 0 < sizes[-1] < 16_000
    assert sum(dns.HEAD.unpack_from(message)[3] for message in found) == 3_003
    assert b"".join(message[head:] for message in found).startswith(dns.soa(10) + dns.ns())
    assert found[-1].endswith(dns.soa(10))
    exact = RpzServer("gf.rpz", history(), Counters())
    records = [b"x" * 8_000, b"y" * 8_000, b"z"]
    of = dns.read_query(query(252))
    assert [len(one) - head async for one in exact._packed(of, iter(records), b"")] == [16_000, 1]
    assert [len(one) - head async for one in exact._packed(of, iter(records[:2]), b"")] == [16_000]
    short = [b"x" * 8_000, b"y" * 7_999, b"z"]
    assert [len(one) - head async for one in exact._packed(of, iter(short), b"")] == [16_000]
    assert [len(one) - head async for one in exact._packed(of, iter(records[:2] + short), b"")] == [16_000, 16_000]


async def test_other_work_has_one_turn_for_each_full_message_of_a_transfer() -> None:
    turns = 0

    async def works() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    work = asyncio.create_task(works())
    found = await answers(RpzServer("gf.rpz", history(3_000), Counters()), query(252))
    assert turns == len(found) - 1
    work.cancel()


async def test_records_that_are_too_long_below_the_zone_are_not_counted() -> None:
    long = ".".join(["x" * 60] * 3 + ["x" * (255 - len(ZONE) - 3 * 61 - 1)])
    kept = ZoneHistory(Zone(10, BaseNames(f"{long}*\n".encode()), OwnNames()))
    (found,) = await answers(RpzServer("gf.rpz", kept, Counters()), query(252))
    assert dns.HEAD.unpack_from(found)[3] == 4, "*.name alone does not fit"
    kept.change(OwnNames({}, {long: Target.ALLOW}), 0.0)
    (step,) = await answers(RpzServer("gf.rpz", kept, Counters()), query(251, serial=10))
    assert dns.HEAD.unpack_from(step)[3] == 4 + 2


async def test_what_cannot_listen_on_udp_listens_on_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[asyncio.Server] = []
    start_server = asyncio.start_server

    async def noted(*arguments: Any, **more: Any) -> asyncio.Server:
        made.append(await start_server(*arguments, **more))
        return made[-1]

    async def fails(*_: object) -> None:
        raise OSError("the port is in use")

    monkeypatch.setattr("asyncio.start_server", noted)
    monkeypatch.setattr(asyncio.get_running_loop(), "create_datagram_endpoint", fails)
    with pytest.raises(OSError, match="in use"):
        await RpzServer("gf.rpz", history(), Counters()).start("127.0.0.1", 0)
    assert [one.is_serving() for one in made] == [False]


async def test_steps_are_sent_as_the_standard_has_it() -> None:
    kept = history(serial=10)
    kept.change(OwnNames({"test.a": Target.BLOCK}), 0.0)
    kept.change(OwnNames({"test.b": Target.BLOCK}), 0.0)
    server = RpzServer("gf.rpz", kept, Counters())
    tail = b"\xc0\x0c" + struct.pack(">HHIH", 5, 1, 60, 1) + b"\0"
    a, b = b"\1a\4test" + tail, b"\1b\4test" + tail
    soa = {serial: dns.soa(serial) for serial in (10, 11, 12)}
    (found,) = await answers(server, query(251, serial=10))
    assert found[12 + len(ZONE) + 4 :] == soa[12] + soa[10] + soa[11] + a + soa[11] + a + soa[12] + b + soa[12]
    (newest,) = await answers(server, query(251, serial=12))
    (told,) = await answers(server, query(6, serial=3))
    assert [one[12 + len(ZONE) + 4 :] for one in (newest, told)] == [soa[12], soa[12]]
    (axfr,) = await answers(server, query(252, serial=12))
    assert dns.HEAD.unpack_from(axfr)[3] == 4, "a whole transfer, whatever the resolver has"


async def test_whole_transfers_are_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "MOST_TRANSFERS", 2)
    kept, counters = history(2_000), Counters()
    server = RpzServer("gf.rpz", kept, counters)
    kept.change(OwnNames({"test.a": Target.BLOCK}), 0.0)
    running = [server._answers(query(252)) for _ in range(2)]
    for one in running:
        assert code(await anext(one)) == dns.NO_ERROR
    (refused,) = await answers(server, query(252))
    assert (code(refused), dns.HEAD.unpack_from(refused)[3]) == (dns.REFUSED, 0)
    (step,) = await answers(server, query(251, serial=10))
    assert code(step) == dns.NO_ERROR
    for one in running:
        await one.aclose()
    assert len(await answers(server, query(252))) > 1
    assert (counters["rpz_transfers"], counters["rpz_increments"], counters["rpz_refused"]) == (3, 1, 1)


async def test_all_messages_of_a_transfer_are_signed_in_a_chain() -> None:
    key = TsigKey("gateway.key", "c2VjcmV0", lambda: 1_800_000_000.0)
    counters = Counters()
    server = RpzServer("gf.rpz", history(2_000), counters, key=key)
    asked, mac = key.sign(query(252), b"")
    found = await answers(server, asked)
    assert len(found) > 1
    for number, message in enumerate(found):
        size = len(key.sign(b"\0" * 12, b"")[0]) - 12
        plain = message[:10] + b"\0\0" + message[12:-size]
        signed, mac = key.sign(plain, mac, first=number == 0)
        assert message == signed
    refused = server.answer_datagram(query(6), "127.0.0.1")
    assert refused is not None
    assert (code(refused), counters["rpz_refused"]) == (dns.REFUSED, 1)
    asked, mac = key.sign(query(6), b"")
    told = server.answer_datagram(asked, "127.0.0.1")
    assert told == key.sign(dns.answer_head(dns.read_query(asked), 1) + dns.soa(10), mac)[0]


async def connected(server: RpzServer, *, small: bool = False) -> tuple[socket.socket, asyncio.Server]:
    tcp, udp = await server.start("127.0.0.1", 0)
    udp.close()
    if small:
        tcp.sockets[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
    client = socket.socket()
    client.setblocking(False)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    await asyncio.get_running_loop().sock_connect(client, tcp.sockets[0].getsockname())
    return client, tcp


async def received(client: socket.socket) -> int:
    loop, size = asyncio.get_running_loop(), 0
    try:
        async with asyncio.timeout(20):
            while data := await loop.sock_recv(client, 65_536):
                size += len(data)
    except ConnectionError:
        pass
    return size


async def test_a_resolver_that_stalls_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "STALLED_S", 0.02)
    server = RpzServer("gf.rpz", history(20_000), Counters())
    client, tcp = await connected(server, small=True)
    message = query(252)
    client.send(len(message).to_bytes(2, "big") + message)
    await comes(lambda: bool(server._connections))
    await comes(lambda: not server._connections)
    assert server._transfers == 0
    assert await received(client) < 60_000, "what was waiting to be sent is dropped"
    client.close()
    tcp.close()


@pytest.mark.parametrize("sent", [b"", b"\0", b"\0\x10abc"])
async def test_a_connection_that_says_nothing_is_closed(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "IDLE_S", 0.02)
    server = RpzServer("gf.rpz", history(), Counters())
    client, tcp = await connected(server)
    client.send(sent)
    assert await received(client) == 0
    client.close()
    tcp.close()


async def test_a_datagram_without_an_answer_is_no_fault() -> None:
    loop, faults = asyncio.get_running_loop(), list[dict[str, object]]()
    loop.set_exception_handler(lambda _, fault: faults.append(fault))
    tcp, udp = await RpzServer("gf.rpz", history(), Counters()).start("127.0.0.1", 0)
    with socket.socket(type=socket.SOCK_DGRAM) as client:
        client.setblocking(False)
        await loop.sock_connect(client, udp.get_extra_info("sockname"))
        client.send(b"nonsense")
        client.send(query(6))
        async with asyncio.timeout(20):
            assert (await loop.sock_recv(client, 512)).endswith(dns.soa(10))
    assert faults == []
    udp.close()
    tcp.close()


ANSWERED = 2 + 12 + len(ZONE) + 4 + len(dns.soa(10))


@pytest.mark.parametrize(("length", "size"), [(len(query(6)), ANSWERED), (2_048, ANSWERED), (2_049, 0)])
async def test_a_query_is_of_a_bounded_length(length: int, size: int) -> None:
    server = RpzServer("gf.rpz", history(), Counters())
    client, tcp = await connected(server)
    client.send(length.to_bytes(2, "big") + query(6).ljust(length, b"\0"))
    client.shutdown(socket.SHUT_WR)
    assert await received(client) == size
    client.close()
    tcp.close()


async def test_connections_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "MOST_CONNECTIONS", 1)
    counters = Counters()
    server = RpzServer("gf.rpz", history(), counters)
    client, tcp = await connected(server)
    with socket.socket() as second:
        second.setblocking(False)
        await asyncio.get_running_loop().sock_connect(second, tcp.sockets[0].getsockname())
        assert await received(second) == 0
    assert (counters["rpz_refused"], len(server._connections)) == (1, 1)
    server.close()
    assert await received(client) == 0
    client.close()
    tcp.close()


async def test_a_resolver_is_told_again_until_it_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    heard: list[bytes] = []
    replies = [False, False, True]

    async def asked(host: str, port: int, message: bytes) -> bool:
        assert (host, port) == ("192.0.2.1", 53)
        heard.append(message)
        return replies[len(heard) - 1]

    async def sleep(wait_s: float) -> None:
        waits.append(wait_s)

    monkeypatch.setattr(server_module, "_asked", asked)
    monkeypatch.setattr("secrets.randbelow", lambda most: most - 1)
    monkeypatch.setattr("asyncio.sleep", sleep)
    counters = Counters()
    server = RpzServer("gf.rpz", history(), counters)
    assert await server.notify("192.0.2.1", 53)
    assert waits == [0.0, 1.0, 3.0]
    assert set(heard) == {dns.notification(65_535, ZONE, 10)}
    replies[:] = [False] * 9
    assert await server.notify("192.0.2.1", 53) is False
    assert waits[3:] == [0.0, 1.0, 3.0, 10.0]
    assert (counters["rpz_notified"], counters["rpz_notify_failed"]) == (1, 1)


@pytest.mark.parametrize(
    ("data", "replies"),
    [
        (b"\1\2\xa4" + bytes(9), True),
        (b"\1\2\x80" + bytes(9), True),
        (b"\1\3\xa4" + bytes(9), False),
        (b"\1\2\x24" + bytes(9), False),
        (b"\1\2\xa4" + bytes(8), False),
    ],
)
async def test_which_datagram_is_a_reply(data: bytes, *, replies: bool) -> None:
    replied: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    reply = server_module._Reply(b"\1\2", replied)
    for _ in range(2):
        reply.datagram_received(data, ("192.0.2.1", 53))
    assert replied.done() is replies
    if replies:
        assert replied.result() is True

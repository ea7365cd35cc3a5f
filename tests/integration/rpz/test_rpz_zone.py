"""The response policy zone: what rules mean in it, what changes, transfers, keys, hostile queries."""

import asyncio
import base64
import socket
import struct
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayfilter.integration.rpz import messages as dns
from gatewayfilter.integration.rpz import server, zone
from gatewayfilter.integration.rpz.base_file import is_zone_name, write_base
from gatewayfilter.integration.rpz.keeper import ZoneFile, ZoneKeeper, line_of
from gatewayfilter.integration.rpz.own_rules import OwnRules
from gatewayfilter.integration.rpz.server import RpzServer
from gatewayfilter.integration.rpz.tsig import TsigKey
from gatewayfilter.integration.rpz.zone import BaseNames, OwnNames, Record, Target, Zone, ZoneHistory, reversed_labels
from gatewayfilter.model import EntryKind, LearnedEntry, ListAction, Source
from gatewayfilter.sources.formats.list_format import ListFormat
from gatewayfilter.sources.subscription import SourceFile
from gatewayfilter.store import Store
from gatewayfilter.telemetry import Counters

BLOCK, ALLOW = Target.BLOCK, Target.ALLOW
LIST = "ads.example.com\n.track.example.net\n.example.org\nsub.example.org\nwith/path\n192.0.2.1\n||x.test^\n"


def names(*lines: str) -> BaseNames:
    """`=host` and `*domain` as a base."""
    marked = sorted((reversed_labels(line[1:]), line[0]) for line in lines)
    return BaseNames("".join(f"{name}{mark}\n" for name, mark in marked).encode())


def own(**rules: str) -> OwnNames:
    """Names as `hosts="+a.test -b.test"` and `domains=…`: `+` allows, `-` blocks."""
    found = {
        kind: {reversed_labels(rule[1:]): ALLOW if rule[0] == "+" else BLOCK for rule in text.split()}
        for kind, text in rules.items()
    }
    return OwnNames(found.get("hosts", {}), found.get("domains", {}))


def shown(zone: Zone) -> list[str]:
    return sorted(line_of(record).strip() for record in zone.records())


@pytest.mark.parametrize(
    ("base", "mine", "lines"),
    [
        (names("=a.test", "*b.test"), own(), ["*.b.test CNAME .", "a.test CNAME .", "b.test CNAME ."]),
        (names("*b.test"), own(domains="+b.test"), ["*.b.test CNAME rpz-passthru.", "b.test CNAME rpz-passthru."]),
        (names("*b.test"), own(hosts="+b.test"), ["*.b.test CNAME .", "b.test CNAME rpz-passthru."]),
        (names("=x.b.test", "*y.b.test", "=b-x.test"), own(domains="+b.test"), [
            "*.b.test CNAME rpz-passthru.", "b-x.test CNAME .", "b.test CNAME rpz-passthru.",
        ]),
        (names("*b.test"), own(domains="+x.b.test"), [
            "*.b.test CNAME .", "*.x.b.test CNAME rpz-passthru.", "b.test CNAME .", "x.b.test CNAME rpz-passthru.",
        ]),
        (names(), own(domains="-b.test", hosts="-c.test"), ["*.b.test CNAME .", "b.test CNAME .", "c.test CNAME ."]),
        (names(), own(domains="+b.test -x.b.test"), ["*.b.test CNAME rpz-passthru.", "b.test CNAME rpz-passthru."]),
    ],
)  # fmt: skip
def test_what_rules_mean_in_the_zone(base: BaseNames, mine: OwnNames, lines: list[str]) -> None:
    assert shown(Zone(1, base, mine)) == lines


_LABELS = st.sampled_from(["a", "b", "a-b", "com", "x1"])
_NAMES = st.lists(_LABELS, min_size=2, max_size=4).map(".".join)
_RULES = st.dictionaries(_NAMES, st.sampled_from([BLOCK, ALLOW]), max_size=5).map(
    lambda found: {reversed_labels(name): target for name, target in found.items()}
)


@given(st.dictionaries(_NAMES, st.sampled_from("=*"), max_size=12), st.lists(st.tuples(_RULES, _RULES), min_size=1, max_size=4))
def test_steps_lead_from_each_version_to_the_newest(base: dict[str, str], changes: list[tuple[dict[str, Target], ...]]) -> None:
    history = ZoneHistory(Zone(5, names(*(f"{mark}{name}" for name, mark in base.items())), OwnNames()))
    versions = {5: set(history.zone.records())}
    for hosts, domains in changes:
        before = history.zone.serial
        if history.change(OwnNames(hosts, domains), now=0):
            assert history.zone.serial == before + 1
        versions[history.zone.serial] = set(history.zone.records())
        assert len(list(history.zone.records())) == len(versions[history.zone.serial])
    for serial, records in versions.items():
        zone, steps = history.since(serial)
        for step in steps or ():
            assert set(step.removed) <= records
            records = (records - set(step.removed)) | set(step.added)  # noqa: PLW2901  version by version
        assert serial == zone.serial or steps
        assert records == set(zone.records())


def test_a_change_beyond_all_steps_looks_up_no_further_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zone, "MOST_CHANGES", 2)
    asked: list[str] = []

    class Asked(BaseNames):
        def below(self, name: str, most: int) -> list[str]:
            asked.append(name)
            return super().below(name, most)

    history = ZoneHistory(
        Zone(1, Asked(b"".join(b"test.%b.%b=\n" % (a, b) for a in (b"a", b"b") for b in (b"x", b"y"))), OwnNames())
    )
    assert history.change(own(domains="-a.test -b.test"), now=0)
    assert (len(asked), history.since(1)[1]) == (1, None)


def test_steps_are_kept_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zone, "MOST_KEPT", 10)
    history = ZoneHistory(Zone(1, names(*(f"=host{number}.b.test" for number in range(8))), OwnNames()))
    for text in ("-a.test", "+b.test", ""):  # 2, 10 and 10 records
        assert history.change(own(domains=text), now=0)
    assert [len(history.since(serial)[1] or ()) for serial in (1, 2, 3)] == [0, 0, 1]


@given(st.sets(_NAMES, max_size=40), _NAMES)
def test_a_look_up_finds_what_is_there(found: set[str], name: str) -> None:
    base = names(*(f"={one}" for one in found))
    assert base.mark(reversed_labels(name)) == ("=" if name in found else "")
    below = sorted(reversed_labels(one) for one in found if one.endswith(f".{name}"))
    assert base.below(reversed_labels(name), 100) == below
    assert len(base) == len(found)


def test_lists_become_a_sorted_file_that_stays_where_nothing_changes(tmp_path: Path) -> None:
    plain, adblock, allowing = tmp_path / "plain", tmp_path / "adblock", tmp_path / "allowing"
    plain.write_text("ads.example.com\ntrack.example.net\nexample.org/path\n")
    adblock.write_text("! comment\n||x.test^\n||y.test^$important\n||z.test^$script\n||co.uk^\n/banner/\nq.test##.ad\n")
    allowing.write_text("good.test\n")
    files = [
        SourceFile(Source("plain", category="ads"), plain, ListFormat.DOMAINS),
        SourceFile(Source("adblock", category="ads"), adblock, ListFormat.ADBLOCK),
        SourceFile(Source("allowing", ListAction.ALLOW), allowing, ListFormat.DOMAINS),
        SourceFile(Source("off", category="social"), plain, ListFormat.DOMAINS),
        SourceFile(Source("missing"), tmp_path / "nothing", ListFormat.DOMAINS),
    ]
    path = tmp_path / "names"
    counts = write_base(files, {"social"}, path)
    marked = dict(line.split(" ") for line in path.read_text().replace("*", " *").replace("=", " =").splitlines())
    assert marked == {"com.example.ads": "*", "net.example.track": "*", "test.x": "*", "test.y": "*"}
    assert (counts.names, counts.left_out) == (4, 3)
    before = path.stat().st_ino
    write_base(files, {"social"}, path)
    assert path.stat().st_ino == before
    assert path.stat().st_mode & 0o777 == 0o600
    assert BaseNames.open(path).mark("test.y") == "*"


def test_a_host_whose_domain_is_listed_too_is_one_name(tmp_path: Path) -> None:
    hosts, domains, path = tmp_path / "hosts", tmp_path / "domains", tmp_path / "names"
    hosts.write_text("0.0.0.0 a.test\n0.0.0.0 b.test\n")
    domains.write_text("a.test\n")
    files = [
        SourceFile(Source("hosts"), hosts, ListFormat.HOSTS),
        SourceFile(Source("domains"), domains, ListFormat.DOMAINS),
    ]
    assert write_base(files, (), path).names == 2
    assert path.read_text() == "test.a*\ntest.b=\n"


@pytest.mark.parametrize(
    ("name", "fits"),
    [("a.test", True), ("_dmarc.a.test", True), ("a", False), ("192.0.2.1", False), ("a..b", False), ("*.a.test", False),
     ("1.0.0.0.0.rpz-client-ip", False), ("24.0.2.0.192.rpz-ip", False), ("ns.test.rpz-nsdname", False), ("rpz-ip.test", True),
     ("é.test", False), ("a.test/x", False), ("-a.test", False), (f"{'a' * 64}.test", False), (".".join(["a" * 60] * 5), False)],
)  # fmt: skip
def test_names_that_a_zone_can_hold(name: str, *, fits: bool) -> None:
    assert is_zone_name(name) is fits


def test_rules_and_learned_hosts_are_followed_by_the_feed_and_end(tmp_path: Path) -> None:
    store = Store.open(f"sqlite:///{tmp_path}/rules.sqlite3")
    base, file, counters = tmp_path / "names", tmp_path / "zone", Counters()
    base.write_text("com.example=\n")
    told: list[int] = []
    history = ZoneHistory(Zone(1, BaseNames(), OwnNames()))
    written = ZoneFile(file, ("true",), 1_000.0, counters)
    keeper = ZoneKeeper(OwnRules(store.lists, store.feed), base, lambda: None, lambda: 1, history, counters, written)
    assert keeper.follow_once()
    assert shown(history.zone) == ["example.com CNAME ."]
    store.lists.add_rule(ListAction.ALLOW, EntryKind.HOST, "example.com")
    store.lists.add_rule(ListAction.BLOCK, EntryKind.DOMAIN, ".bad.test", scope="client:anna")
    store.lists.add_rule(ListAction.BLOCK, EntryKind.URL, "bad.test/page")
    ends = time.time() + 1_000
    store.lists.put_learned([LearnedEntry(".learned.test", ListAction.BLOCK, "gambling", "http://learned.test/", "", 0.0, ends)])
    told.append(history.zone.serial)
    assert keeper.follow_once()
    assert shown(history.zone) == [
        "*.learned.test CNAME .", "example.com CNAME rpz-passthru.", "learned.test CNAME .",
    ]  # fmt: skip
    assert history.since(told[0])[1] is not None
    assert not keeper.follow_once()
    store.lists.remove_learned([".learned.test"])
    assert keeper.follow_once()
    assert shown(history.zone) == ["example.com CNAME rpz-passthru."]
    assert "example.com CNAME ." in file.read_text()  # written at most every 1,000 s
    assert counters["rpz_files"] == 1
    store.close()


KEY = TsigKey("gateway.key", base64.b64encode(b"secret of both").decode())


def query(qtype: int, zone: str = "gf.rpz", serial: int | None = None, opcode: int = 0) -> bytes:
    soa = b""
    if serial is not None:
        data = b"\0\0" + struct.pack(">IIIII", serial, 1, 1, 1, 1)
        soa = b"\xc0\x0c" + struct.pack(">HHIH", dns.SOA, 1, 0, len(data)) + data
    head = dns.HEAD.pack(7, opcode << 11, 1, 0, int(bool(soa)), 0)
    return head + dns.wire_name(zone) + struct.pack(">HH", qtype, 1) + soa


class Resolver:
    """A server of the zone, and a client of it."""

    def __init__(self, history: ZoneHistory, key: TsigKey | None = None) -> None:
        self.counters = Counters()
        self.server = RpzServer("gf.rpz", history, self.counters, key=key)
        self.port = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Resolver"]:
        tcp, udp = await self.server.start("127.0.0.1", 0)
        self.port = tcp.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            self.server.close()
            tcp.close()
            udp.close()

    async def ask(self, message: bytes) -> list[bytes]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(len(message).to_bytes(2, "big") + message)
        writer.write_eof()
        found = []
        while head := await asyncio.wait_for(reader.read(2), 20):
            head += await reader.readexactly(2 - len(head))
            found.append(await reader.readexactly(int.from_bytes(head, "big")))
        writer.close()
        return found


def records(found: list[bytes]) -> tuple[int, int]:
    """The number of records of a transfer, and its code."""
    return sum(dns.HEAD.unpack_from(message)[3] for message in found), dns.HEAD.unpack_from(found[0])[1] & 0xF


async def test_a_zone_is_transferred_whole_or_by_steps() -> None:
    base = names(*(f"*host{number}.test" for number in range(3_000)))
    history = ZoneHistory(Zone(10, base, OwnNames()))
    history.change(own(domains="-new.test +host7.test"), now=0)
    async with Resolver(history).running() as resolver:
        whole = await resolver.ask(query(dns.AXFR))
        assert len(whole) > 2
        assert records(whole) == (6_002 + 3, 0)
        assert records(await resolver.ask(query(dns.IXFR, serial=10))) == (4 + 2 + 4, 0)
        assert records(await resolver.ask(query(dns.IXFR, serial=11))) == (1, 0)
        assert records(await resolver.ask(query(dns.IXFR, serial=3))) == (6_005, 0)
        assert records(await resolver.ask(query(dns.SOA))) == (1, 0)
        assert records(await resolver.ask(query(dns.AXFR, "other.rpz"))) == (0, dns.REFUSED)
        assert records(await resolver.ask(query(dns.AXFR, opcode=5))) == (0, dns.NOT_IMPLEMENTED)
        assert await resolver.ask(b"nonsense") == []
        assert resolver.counters["rpz_transfers"] == 2
        assert resolver.counters["rpz_increments"] == 1
        assert resolver.server.answer_datagram(query(dns.SOA), "192.0.2.1") is None
        assert records([resolver.server.answer_datagram(query(dns.AXFR), "127.0.0.1") or b""]) == (1, 0)


async def test_a_query_by_udp_is_answered() -> None:
    replied: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    class Asks(asyncio.DatagramProtocol):
        def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
            assert addr[0] == "127.0.0.1"
            replied.set_result(data)

    resolver = Resolver(ZoneHistory(Zone(10, names(), OwnNames())))
    tcp, udp = await resolver.server.start("127.0.0.1", 0)
    asking, _ = await asyncio.get_running_loop().create_datagram_endpoint(Asks, remote_addr=udp.get_extra_info("sockname")[:2])
    asking.sendto(query(dns.SOA))
    assert (await asyncio.wait_for(replied, 20)).endswith(dns.soa(10))
    asking.close()
    resolver.server.close()
    tcp.close()
    udp.close()


def test_names_are_read_through_pointers() -> None:
    message = bytes(300) + b"\x03Bad\x04test\0" + b"\x01a\xc1\x2c" + b"\xc1\x36" + b"\xc1\x3a"
    assert dns.read_name(message, 310) == (b"\x01a\x03bad\x04test\0", 314)
    assert dns.read_name(message, 314) == (b"\x01a\x03bad\x04test\0", 316)
    for cut, at in ((message[:315], 314), (message[:314] + b"\xc1\x3a", 314), (message[:310] + b"\x09short", 310)):
        with pytest.raises(dns.MessageError):
            dns.read_name(cut, at)


def test_records_of_the_zone_live_a_minute() -> None:
    for record, kind in ((dns.soa(7), dns.SOA), (dns.ns(), 2)):
        assert struct.unpack_from(">HHI", record, 2) == (kind, 1, 60)


def test_a_key_without_a_secret_is_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        TsigKey("gateway.key", "")


async def test_transfers_are_signed_where_a_key_is_set() -> None:
    history = ZoneHistory(Zone(10, names(*(f"*host{number}.test" for number in range(2_000))), OwnNames()))
    async with Resolver(history, KEY).running() as resolver:
        assert records(await resolver.ask(query(dns.AXFR))) == (0, dns.REFUSED)
        other = TsigKey("gateway.key", base64.b64encode(b"another").decode())
        assert records(await resolver.ask(other.sign(query(dns.AXFR), b"")[0])) == (0, dns.REFUSED)
        late = TsigKey("gateway.key", base64.b64encode(b"secret of both").decode(), lambda: time.time() - 4_000)
        assert records(await resolver.ask(late.sign(query(dns.AXFR), b"")[0])) == (0, dns.REFUSED)
        whole = await resolver.ask(KEY.sign(query(dns.AXFR), b"")[0])
        assert records(whole) == (4_003, 0)
        assert all(dns.HEAD.unpack_from(message)[5] == 1 for message in whole)


async def test_a_transfer_has_an_end_and_leaves_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "TRANSFER_S", 0.0)
    history = ZoneHistory(Zone(10, names(*(f"*host{number}.test" for number in range(2_000))), OwnNames()))
    async with Resolver(history).running() as resolver:
        found: list[bytes] = []
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            found = await resolver.ask(query(dns.AXFR))
        assert sum(dns.HEAD.unpack_from(message)[3] for message in found) < 1_000
        assert resolver.server._transfers == 0


async def test_resolvers_are_told_and_silence_is_counted() -> None:
    heard: list[bytes] = []
    asked_from: list[tuple[str, int]] = []

    class Listens(asyncio.DatagramProtocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.transport = transport

        def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
            heard.append(data)
            asked_from.append(addr)
            assert isinstance(self.transport, asyncio.DatagramTransport)
            self.transport.sendto(data[:2] + b"\xa4\x00" + data[4:], addr)

    udp, _ = await asyncio.get_running_loop().create_datagram_endpoint(Listens, ("127.0.0.1", 0))
    resolver = Resolver(ZoneHistory(Zone(10, BaseNames(), OwnNames())))
    assert await resolver.server.notify("127.0.0.1", udp.get_extra_info("sockname")[1])
    udp.close()
    assert heard[0][2] == 0x24
    await asyncio.sleep(0)
    with socket.socket(type=socket.SOCK_DGRAM) as again:
        again.bind(asked_from[0])  # the socket that asked is closed
    assert resolver.counters["rpz_notified"] == 1


@given(st.binary(max_size=200), st.sampled_from([dns.SOA, dns.AXFR, dns.IXFR]))
def test_no_query_is_a_fault(noise: bytes, qtype: int) -> None:
    server = RpzServer("gf.rpz", ZoneHistory(Zone(1, BaseNames(), OwnNames())), Counters(), key=KEY)
    good = KEY.sign(query(qtype), b"")[0]
    for data in (noise, good[: len(noise)], good[:12] + noise, good[: -len(noise) or None] + noise):
        server.answer_datagram(data, "127.0.0.1")


def test_a_record_that_is_too_long_below_the_zone_is_left_out() -> None:
    long = ".".join(["a" * 60] * 4)
    assert dns.policy(Record(long, True, BLOCK), 20) == b""
    assert dns.policy(Record("com.a", True, ALLOW), 8).startswith(b"\x01*\x01a\x03com\xc0\x0c")

"""Host names of devices: whose are looked up, within which time, and what is left of a hostile one."""

import socket
import struct
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayfilter.addresses.naming import host_names
from gatewayfilter.addresses.naming.host_names import by_multicast, clean_name, name_in, names_of

ADDRESS = "192.168.7.20"
POINTER = "20.7.168.192.in-addr.arpa"


def answer(name: bytes, owner: str = POINTER, number: int = 7, flags: int = 0x8400) -> bytes:
    written = b"".join(bytes([len(label)]) + label.encode() for label in owner.split(".")) + b"\0"
    question = written + struct.pack("!HH", 12, 1)
    record = b"\xc0\x0c" + struct.pack("!HHIH", 12, 1, 60, len(name)) + name
    return struct.pack("!HHHHHH", number, flags, 1, 1, 0, 0) + question + record


TABLET = b"\x06tablet\x05local\0"
PACKETS = [
    ("plain", answer(TABLET), "tablet"),
    ("as mDNS numbers it", answer(TABLET, number=0), "tablet"),
    ("another number", answer(TABLET, number=9), ""),
    ("a question", answer(TABLET, flags=0), ""),
    ("about another address", answer(TABLET, owner="1.1.1.1.in-addr.arpa"), ""),
    ("a loop", answer(b"\xc0" + bytes([12 + len(POINTER) + 2 + 4 + 12])), ""),
    ("cut off", answer(b"\x3fshort"), ""),
    ("a long label", answer(b"\x7f" + b"a" * 127 + b"\0"), ""),
    ("control characters", answer(b"\x0bta\x1b[31m\n<b>\0"), "ta31mb"),
    ("not unicode", answer(b"\x04\xff\xfeab\0"), "ab"),
    ("empty", b"", ""),
    ("many records", struct.pack("!HHHHHH", 7, 0x8400, 0, 60000, 0, 0), ""),
]


@pytest.mark.parametrize(("packet", "name"), [case[1:] for case in PACKETS], ids=[case[0] for case in PACKETS])
def test_the_name_in_an_answer(packet: bytes, name: str) -> None:
    assert name_in(packet, 7, POINTER) == name


@given(st.binary(max_size=200))
def test_any_bytes_are_read(packet: bytes) -> None:
    assert name_in(struct.pack("!HHHHHH", 7, 0x8400, 1, 3, 0, 0) + packet, 7, POINTER).isascii()
    name_in(packet, 7, POINTER)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("tablet.lan.", "tablet"),
        ("Anna's iPad.local", "Annas iPad"),
        ("<script>alert(1)</script>", "scriptalert1script"),
        ("a" * 200, "a" * 63),
        ("\x1b[2Jx", "2Jx"),
        ("\u202eevil", "evil"),
        ("..", ""),
        ("", ""),
    ],
)
def test_names_are_cleaned(text: str, kept: str) -> None:
    assert clean_name(text) == kept


def test_addresses_of_the_internal_network_alone_are_looked_up() -> None:
    asked: list[str] = []

    def look_up(address: str) -> str:
        asked.append(address)
        return f"host-{address[-1]}.lan"

    found = names_of(["8.8.8.8", ADDRESS, "127.0.0.1", "x", "169.254.169.254", "fd00::7"], look_ups=[look_up])
    assert found == {ADDRESS: "host-0", "fd00::7": "host-7"}
    assert sorted(asked) == [ADDRESS, "fd00::7"]


def test_the_next_one_is_asked_where_one_fails() -> None:
    def fails(address: str) -> str:
        raise OSError(address)

    assert names_of([ADDRESS], look_ups=[fails, lambda _: "", lambda _: "tv"]) == {ADDRESS: "tv"}
    assert names_of([ADDRESS], look_ups=[fails]) == {}
    assert names_of([], look_ups=[fails]) == {}


def test_a_look_up_that_hangs_is_left_out() -> None:
    release = threading.Event()

    def hangs(address: str) -> str:
        if address == ADDRESS:
            release.wait(30)
        return "tv"

    began = time.monotonic()
    assert names_of([ADDRESS, "10.0.0.1"], limit_s=0.3, look_ups=[hangs]) == {"10.0.0.1": "tv"}
    release.set()
    assert time.monotonic() - began < 20


def test_a_device_is_asked_on_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as device:
        device.bind(("127.0.0.1", 0))
        monkeypatch.setattr(host_names, "_GROUPS", (device.getsockname(),))
        monkeypatch.setattr(host_names, "_EACH_S", 5.0)

        def respond() -> None:
            packet, sender = device.recvfrom(1500)
            number = int.from_bytes(packet[:2])
            device.sendto(b"\xff", sender)
            device.sendto(answer(TABLET, "1.0.0.127.in-addr.arpa", number), sender)

        thread = threading.Thread(target=respond)
        thread.start()
        assert by_multicast("127.0.0.1") == "tablet"
        thread.join()
        monkeypatch.setattr(host_names, "_EACH_S", 0.05)
        assert by_multicast("127.0.0.1") == by_multicast("fd00::1") == ""

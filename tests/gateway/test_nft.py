"""Who listens, as the real kernel tells it; what nft is asked, and what becomes of its answers, by a program in its place."""

import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from gatewayfilter.errors import GatewayError
from gatewayfilter.gateway.nft import Kernel
from gatewayfilter.gateway.ruleset import TABLE

PROGRAM = """#!/bin/sh
cd {folder}
echo "$@" >> calls
case "$*" in
"list tables") cat tables ;;
*"list table"*) . ./list ;;
*) cat > given; . ./load ;;
esac
"""


class FakeNft:
    """A program `nft` that notes how it is called; `load` and `list` are what its shell does then."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "nft").write_text(PROGRAM.format(folder=folder))
        (folder / "nft").chmod(0o755)
        self.will(tables=f"table inet other\ntable inet {TABLE}\n", list="echo listed", load="")

    def will(self, **texts: str) -> None:
        for name, text in texts.items():
            (self.folder / name).write_text(text)

    @property
    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text().splitlines()


@pytest.fixture
def nft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeNft:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return FakeNft(tmp_path)


@pytest.mark.parametrize(("host", "families"), [("127.0.0.1", {4}), ("::1", {6}), ("0.0.0.0", {4})], ids=["v4", "v6", "any"])
def test_a_listener_is_seen_in_its_family(host: str, families: set[int]) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as server:
        port = server.getsockname()[1]
        assert Kernel().listens(port) == families
    assert Kernel().listens(port) == frozenset()


def test_connections_and_sockets_that_only_hold_a_port_are_no_listeners() -> None:
    with ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        client = stack.enter_context(socket.create_connection(server.getsockname()))
        stack.enter_context(server.accept()[0])
        holder = stack.enter_context(socket.socket())
        holder.bind(("127.0.0.1", 0))
        for held in (client, holder):
            assert Kernel().listens(held.getsockname()[1]) == frozenset()


def test_many_connections_do_not_hide_a_listener() -> None:
    with ExitStack() as stack:
        busy = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=300))
        for _ in range(200):
            stack.enter_context(socket.create_connection(busy.getsockname()))
        late = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        assert Kernel().listens(late.getsockname()[1]) == {4}
        assert Kernel().listens(busy.getsockname()[1]) == {4}


def test_switches_are_read_and_a_strange_one_is_refused() -> None:
    assert Kernel().switch("net/ipv4/ip_forward") in {"0", "1"}
    assert Kernel().switch("net/ipv4/no_such_switch") is None
    with pytest.raises(GatewayError, match=r"cannot set net\.ipv4\.no_such_switch to 1"):
        Kernel().set_switch("net/ipv4/no_such_switch", "1")
    assert "lo" in Kernel().interfaces()


def test_a_missing_nft_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewayfilter.gateway.nft._SBIN", "/nowhere")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(GatewayError, match="install the package nftables"):
        Kernel().has_table()


def test_rules_are_loaded_or_checked(nft: FakeNft) -> None:
    Kernel().load("rules")
    assert (nft.calls, (nft.folder / "given").read_text()) == (["-f -"], "rules")
    Kernel().load("others", check_only=True)
    assert (nft.calls[1:], (nft.folder / "given").read_text()) == (["-c -f -"], "others")


def test_the_table_is_listed_with_and_without_counters(nft: FakeNft) -> None:
    assert Kernel().has_table() is True
    assert (Kernel().listing(), Kernel().counted()) == ("listed\n", "listed\n")
    asked = [call for call in nft.calls if call != "list tables"]
    assert asked == [f"-s list table inet {TABLE}", f"list table inet {TABLE}"]


@pytest.mark.parametrize("tables", ["", f"table ip {TABLE}\n", f"table inet {TABLE}2\n", f"table inet {TABLE}"])
def test_a_table_that_is_not_loaded_is_not_listed(nft: FakeNft, tables: str) -> None:
    nft.will(tables=tables)
    assert not Kernel().has_table()
    assert (Kernel().listing(), Kernel().counted()) == ("", "")
    assert set(nft.calls) == {"list tables"}


def test_a_table_that_is_removed_meanwhile_is_not_loaded(nft: FakeNft) -> None:
    nft.will(list="echo gone >&2; : > tables; exit 1")
    assert Kernel().listing() == ""
    nft.will(list="echo broken >&2; exit 1", tables=f"table inet {TABLE}\n")
    with pytest.raises(GatewayError, match="nft refuses the rules: broken"):
        Kernel().listing()


@pytest.mark.parametrize(
    ("load", "sentence"),
    [
        ("exit 1", "nft refuses the rules: no reason given"),
        ("printf '\\n  first \\nsecond\\n' >&2; exit 2", r"nft refuses the rules: first$"),
        ("echo 'Operation not permitted (you must be root)' >&2; exit 1", r"run this as root \(CAP_NET_ADMIN\)"),
        ("exec sleep 5", "cannot run nft: .*timed out"),
    ],
)
def test_why_nft_refuses(nft: FakeNft, monkeypatch: pytest.MonkeyPatch, load: str, sentence: str) -> None:
    monkeypatch.setattr("gatewayfilter.gateway.nft._TIMEOUT_S", 0.2 if "sleep" in load else 20.0)
    nft.will(load=load)
    with pytest.raises(GatewayError, match=sentence):
        Kernel().load("rules")


def test_warnings_of_nft_are_no_errors(nft: FakeNft) -> None:
    nft.will(load="echo 'not permitted' >&2")
    Kernel().load("rules")


def test_a_switch_is_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("gatewayfilter.gateway.nft._SYSCTL", tmp_path)
    (tmp_path / "net").mkdir()
    Kernel().set_switch("net/a", "1")
    assert Kernel().switch("net/a") == "1"

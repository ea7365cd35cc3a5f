"""A device's app that accepts no certificate of the filter's: it passes unread, until a page of its host is blocked."""

import socket
import ssl
import time
from pathlib import Path

import pytest

from gatewayfilter.model import LearnedEntry, ListAction
from gatewayfilter.store import Store
from tests.e2e.e2e_gateway import ANSWER_S, GatewayProcess, Origin, until

pytestmark = pytest.mark.slow


def read_head(plain: socket.socket) -> None:
    """Reads to the end of a head.

    Raises:
        ConnectionResetError: the connection ended before.
    """
    answer = b""
    while b"\r\n\r\n" not in answer:
        got = plain.recv(4096)
        if not got:
            raise ConnectionResetError("the filter has ended the connection")
        answer += got


def tunnel(gateway: GatewayProcess, port: str, authority: Path) -> ssl.SSLSocket:
    """Opens a tunnel to the site and shakes hands with whoever is there, trusting one authority alone."""
    host, _, proxy_port = gateway.address.rpartition(":")
    plain = socket.create_connection((host, int(proxy_port)), ANSWER_S)
    try:
        plain.sendall(f"CONNECT localhost:{port} HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode())
        read_head(plain)
        return ssl.create_default_context(cafile=str(authority)).wrap_socket(plain, server_hostname="localhost")
    except BaseException:
        plain.close()
        raise


def issuer(gateway: GatewayProcess, port: str, authority: Path) -> str | None:
    """Returns who signed the certificate, `""` when it was not to the client's liking.

    `None` for a connection that the filter has reset: as it does with what passes through at the moment from which it must not.
    """
    try:
        with tunnel(gateway, port, authority) as opened:
            return str((opened.getpeercert() or {})["issuer"])
    except ssl.SSLError:
        return ""
    except ConnectionError:
        return None


def test_it_passes_unread_until_a_page_is_blocked(state: Path, https_site: Origin, trusting: dict[str, str]) -> None:
    makers = Path(trusting["proxy__upstream_ca"])
    port = https_site.base.rpartition(":")[2]
    page = f"https://localhost:{port}/casino/1"
    with GatewayProcess(state, **trusting, proxy__workers="1", learn__enabled="false") as gateway:
        assert gateway.get(f"https://localhost:{port}/garden/1").status == 200  # the device accepts the filter's certificate
        for _ in range(3):
            assert issuer(gateway, port, makers) == ""  # the app trusts its maker alone
            time.sleep(2.1)
        passes = until("pass-through", lambda: issuer(gateway, port, makers))
        assert "trustme" in passes
        check = ("check", page, "--client", "127.0.0.1")  # by what the worker writes down once a second
        until("it in a check", lambda: "127.0.0.1 passes through unread until" in gateway.cli(*check).stdout)
        assert "pass through unread" in gateway.cli(*check).stdout

        open_yet = tunnel(gateway, port, makers)
        key = f"localhost:{port}/casino/1"
        entry = LearnedEntry(key, ListAction.BLOCK, "gambling", page, "score 9", time.time(), time.time() + 600)
        store = Store.open(f"sqlite:///{state / 'gatewayfilter.sqlite3'}")
        store.lists.put_learned([entry])
        until("the end of it", lambda: issuer(gateway, port, makers) == "", 5.0)
        with open_yet, pytest.raises(ConnectionResetError):  # of what is open, too: it does not time out
            open_yet.recv(1)
        assert gateway.get(page).reason == "learned"
        assert gateway.json("check", page, "--client", "127.0.0.1")["connection"]["unread"] is False
        assert gateway.cli("publish").returncode == 0
        until("swap", lambda: gateway.status("proxy-0")["counters"].get("snapshot_swaps"))
        assert issuer(gateway, port, makers) == ""

        store.lists.remove_learned([key])
        store.close()
        until("pass-through again", lambda: issuer(gateway, port, makers), 5.0)
        assert gateway.cli("publish").returncode == 0
        until("the second swap", lambda: gateway.status("proxy-0")["counters"]["snapshot_swaps"] == 2)
        assert "trustme" in (issuer(gateway, port, makers) or "")
        assert gateway.json("check", page, "--client", "127.0.0.1")["connection"]["unread"] is True

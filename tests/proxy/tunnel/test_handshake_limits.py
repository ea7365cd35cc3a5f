"""Which handshakes have a limit, what lifts it, and which connection ends at it."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

from mitmproxy import tls
from mitmproxy.proxy.server_hooks import ServerConnectionHookData
from mitmproxy.test import tflow

from gatewayfilter.proxy.tunnel.origin_handshakes import OriginHandshakes


class Writer(asyncio.StreamWriter):
    """Notes that its connection was aborted."""

    def __init__(self) -> None:
        self.aborted = 0

    def __del__(self) -> None:
        pass

    @property
    def transport(self) -> Any:
        return self

    def abort(self) -> None:
        self.aborted += 1


def data(client: Any, conn: Any) -> tls.TlsData:
    return cast("tls.TlsData", SimpleNamespace(conn=conn, context=SimpleNamespace(client=client)))


async def test_the_limit_is_lifted_however_a_handshake_ends() -> None:
    addon, client, server = OriginHandshakes({}), tflow.tclient_conn(), tflow.tserver_conn()
    other = tflow.tserver_conn()
    ended = cast("ServerConnectionHookData", SimpleNamespace(client=client, server=server))
    ends: tuple[Callable[[], None], ...] = (
        lambda: addon.tls_established_server(data(client, server)),
        lambda: addon.tls_failed_server(data(client, server)),
        lambda: addon.server_disconnected(ended),
    )
    for end in ends:
        addon.tls_start_server(data(client, client))
        assert len(addon._limits) == 0, "clients have a limit of their own"
        addon.tls_start_server(data(client, server))
        addon.tls_start_server(data(client, other))
        end()
        assert (len(addon._limits), (client.id, other) in addon._limits) == (1, True)
        addon.tls_established_server(data(client, client))
        assert len(addon._limits) == 1
        addon.done()
        assert len(addon._limits) == 0


async def test_only_the_connection_that_is_over_its_time_ends() -> None:
    client, server, other = tflow.tclient_conn(), tflow.tserver_conn(), tflow.tserver_conn()
    late, kept = Writer(), Writer()
    carried = {server: SimpleNamespace(writer=late), other: SimpleNamespace(writer=kept)}
    addon = OriginHandshakes(cast("Any", {client.id: SimpleNamespace(transports=carried)}))
    addon._over((client.id, server))
    assert (late.aborted, kept.aborted) == (1, 0)
    carried[server] = SimpleNamespace(writer=None)
    addon._over((client.id, server))
    del carried[server]
    addon._over((client.id, server))
    addon._over(("a client that went", other))
    assert (late.aborted, kept.aborted) == (1, 0)

"""The byte limit of a connection, at its edge: `gatewayfilter.crawl.net.byte_limit`."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp.client_proto import ResponseHandler

from gatewayfilter.crawl.net import byte_limit
from gatewayfilter.crawl.net.byte_limit import ALLOWANCE, FloodError, MeteredConnector, allow_body


def test_a_connection_ends_with_the_first_byte_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[Any] = []
    monkeypatch.setattr(ResponseHandler, "data_received", lambda _, data: taken.append(data))
    monkeypatch.setattr(ResponseHandler, "set_response_params", lambda _, **options: taken.append(options))
    monkeypatch.setattr(byte_limit, "ALLOWANCE", 4)

    async def run() -> None:
        connector = MeteredConnector()
        connection: Any = connector._factory()
        connection.transport = SimpleNamespace(abort=lambda: taken.append("aborted"))
        failures: list[BaseException] = []
        connection._payload = SimpleNamespace(set_exception=failures.append)
        connection.data_received(b"before a request")
        connection.set_response_params(read_until_eof=True)
        connection.data_received(b"x" * 999)
        assert taken == [b"before a request", {"read_until_eof": True}, b"x" * 999], "without a limit nothing is counted"
        taken.clear()
        allow_body(3)
        for _ in range(2):  # each request counts anew
            connection.set_response_params()
            connection.data_received(b"123456")
            connection.data_received(b"7890")
        assert taken == [{}, b"123456", b"7890"] * 2
        assert (connection.exception(), failures) == (None, [])
        connection.data_received(b"!")
        assert (taken[-1], len(taken)) == ("aborted", 7)
        (failure,) = failures
        assert isinstance(failure, FloodError)
        assert (connection.exception(), connection._payload) == (failure, None)
        connection.transport = None
        connection.set_response_params()
        connection.data_received(b"12345678901")
        assert (taken[-1], len(failures)) == ({}, 1)
        await connector.close()

    asyncio.run(run())
    assert ALLOWANCE == 262_144

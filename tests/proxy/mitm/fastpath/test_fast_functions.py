import os
from collections.abc import Iterator
from typing import Any, cast
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mitmproxy import http, options
from mitmproxy.connection import ConnectionState, Server
from mitmproxy.coretypes import multidict
from mitmproxy.proxy import events, server_hooks
from mitmproxy.proxy.context import Context
from mitmproxy.test.tflow import tclient_conn

from gatewayfilter.proxy.mitm.fastpath import fast_functions
from gatewayfilter.proxy.mitm.fastpath.context import FastPath, FastPathContext, FrozenOptions
from gatewayfilter.proxy.mitm.fastpath.fast_functions import FastIds, make_flow, make_server
from gatewayfilter.proxy.mitm.fastpath.steps import Hooks
from gatewayfilter.proxy.mitm.install import install
from gatewayfilter.proxy.pages.block_page import BlockPages

_make_server: Any = Server.__init__
NAMES = st.sampled_from(["a", "A", "b", "Content-Type", "content-type", "x\u00e9", "none"])
FIELDS = st.lists(st.tuples(NAMES.map(str.encode), st.binary(max_size=8)), max_size=6)


class SlowHeaders(multidict.MultiDict[bytes, bytes]):
    """mitmproxy's own look-up, untouched."""

    _reduce_values = staticmethod(", ".join)

    @staticmethod
    def _kconv(key: bytes) -> bytes:
        return key.lower()


@pytest.fixture(scope="module", autouse=True)
def installed() -> Iterator[None]:
    install(BlockPages(), fast_path=True)
    yield
    install(BlockPages(), fast_path=False)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(fields=FIELDS, name=NAMES)
def test_headers_answer_as_before(fields: list[tuple[bytes, bytes]], name: str) -> None:
    fast, slow = http.Headers(fields), SlowHeaders(fields)  # type: ignore[no-untyped-call]
    expected = [value.decode("utf-8", "surrogateescape") for value in slow.get_all(name.encode())]
    assert fast.get_all(name) == expected
    assert fast.get_all(name.encode()) == expected
    assert fast.get(name, "default") == (", ".join(expected) if expected else "default")
    assert (name in fast) == bool(expected)
    assert 7 not in fast
    if expected:
        assert fast[name] == ", ".join(expected)
    else:
        with pytest.raises(KeyError):
            fast[name]


@settings(max_examples=30)
@given(fields=FIELDS)
def test_headers_are_written_as_before(fields: list[tuple[bytes, bytes]]) -> None:
    expected = b"".join(name + b": " + value + b"\r\n" for name, value in fields)
    assert bytes(http.Headers(fields)) == expected


def test_headers_can_still_be_changed() -> None:
    headers = http.Headers([(b"A", b"1"), (b"a", b"2")])
    headers["A"] = "3"
    headers.add("b", "4")
    assert headers.fields == ((b"A", b"3"), (b"b", b"4"))
    del headers["b"]
    assert headers.pop("a") == "3"
    assert not headers.fields


def test_options_read_the_same() -> None:
    current = options.Options()
    frozen = FrozenOptions(current)
    assert frozen == current
    assert vars(frozen).items() >= {name: getattr(current, name) for name in current.keys()}.items()  # noqa: SIM118
    with pytest.raises(AttributeError):
        frozen.http2 = False


def test_a_context_is_forked_whole() -> None:
    current = options.Options()
    fast_path = FastPath(cast("Hooks", None), FrozenOptions(current), keeps_bodies=False)
    context = FastPathContext.of(Context(tclient_conn(), current), fast_path)
    context.layers.append(object())  # type: ignore[arg-type]
    fork = context.fork()
    assert vars(fork) == vars(context)
    assert set(vars(fork)) == {"client", "server", "options", "layers", "fast_path"}
    fork.layers.clear()
    assert context.layers


def test_hooks_and_replies_are_made_as_before() -> None:
    client = tclient_conn()
    hook = server_hooks.ClientConnectedHook(client)
    assert (hook.name, hook.args(), hook.blocking) == ("client_connected", [client], True)
    reply = events.HookCompleted(hook, None)
    assert (type(reply), reply.command, reply.reply) == (events.HookCompleted, hook, None)


def test_identifiers_are_distinct_uuids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FastIds, "_begin", FastIds._begin)
    made = [FastIds.uuid4() for _ in range(200)]
    FastIds.renew()
    made += [FastIds.uuid4() for _ in range(200)]
    assert len(set(made)) == len(made)
    assert made[0][:23] != made[-1][:23]
    for one in made:
        assert str(UUID(one)) == one
        assert (UUID(one).version, UUID(one).variant) == (8, "specified in RFC 4122")


@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")  # the child runs one line of it
def test_identifiers_of_a_forked_process_begin_anew() -> None:
    ours = FastIds.uuid4()
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        os.write(writes, FastIds.uuid4().encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writes)
    theirs = os.read(reads, 36).decode()
    os.close(reads)
    assert UUID(theirs)
    assert theirs[:23] != ours[:23]


def test_a_flow_has_the_same_fields() -> None:
    client, server = tclient_conn(), Server(address=None)
    ours, theirs = make_flow(client, server), http.HTTPFlow(client, server, live=True)
    assert type(ours) is http.HTTPFlow
    changing = {"id", "timestamp_created"}
    assert vars(ours).keys() == vars(theirs).keys()
    assert {name: value for name, value in vars(ours).items() if name not in changing} == {
        name: value for name, value in vars(theirs).items() if name not in changing
    }
    assert ours.id != theirs.id
    assert 0 <= theirs.timestamp_created - ours.timestamp_created < 60
    ours.metadata["a"] = 1
    assert not make_flow(client, server).metadata


@pytest.mark.parametrize(
    "given",
    [
        {"address": None},
        {"address": ("a.example", 443)},
        {"address": ("a.example", 443), "transport_protocol": "udp"},
        {"address": None, "sni": "a.example", "tls": True},
    ],
)
def test_a_server_has_the_same_fields(given: dict[str, Any]) -> None:
    ours, theirs = Server.__new__(Server), Server.__new__(Server)
    make_server(ours, **given)
    _make_server(theirs, **given)
    mine, other = vars(ours).copy(), vars(theirs).copy()
    assert mine.pop("id") != other.pop("id")
    assert mine == other
    ours.state = ConnectionState.OPEN
    with pytest.raises(RuntimeError):
        ours.address = ("b.example", 443)


@pytest.mark.parametrize("given", [{"address": None}, {"address": ("a.example", 443), "transport_protocol": "tcp"}])
def test_the_servers_of_layers_are_made_the_short_way(given: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast_functions, "_init", None)
    made = Server.__new__(Server)
    make_server(made, **given)
    assert (made.address, made.transport_protocol) == (given["address"], "tcp")


@pytest.mark.parametrize("given", [{}, {"transport_protocol": "tcp"}, {"address": None, "name": "x"}])
def test_what_is_no_server_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        make_server(Server.__new__(Server), **given)


def test_connections_are_compared_by_their_identifier() -> None:
    one, other, copy = Server(address=None), Server(address=None), Server(address=("a.example", 1))
    copy.id = one.id
    assert one == one  # noqa: PLR0124  the shorter way
    assert one == copy
    assert hash(one) == hash(copy)
    assert one != other
    assert one != one.id

"""The integration with mitmproxy: one table of everything that is replaced in its modules and classes, put in place by `Setup`.

| part | where |
|---|---|
| replaced for the whole process | `REPLACEMENTS` here |
| set on single objects | `INSTANCES` in upstream.py |
| subclasses that our code uses itself | `FastHttpLayer`, `FastPathContext`, `HookRunner` in fastpath/; the classes of server.py |
| relied on and not replaced | `RELIED_ON` in upstream_digests.py |

tests/proxy/mitm/test_mitmproxy_pin.py compares the digests with the installed version, and checks that nothing else is replaced.
"""

from functools import partial
from typing import Final

from mitmproxy import addonmanager, connection, flow, http
from mitmproxy.proxy import commands, events, mode_servers
from mitmproxy.proxy.layers import http as http_layers
from mitmproxy.proxy.layers import tls as tls_layers
from mitmproxy.proxy.layers.http import HttpLayer, _http1
from mitmproxy.proxy.layers.tls import ServerTLSLayer, TLSLayer

from gatewayfilter.proxy.mitm.fastpath import fast_functions, hello_reader, tls_path
from gatewayfilter.proxy.mitm.fastpath.connection_handler import FastConnectionHandler
from gatewayfilter.proxy.mitm.fastpath.hook_runner import CachedAddonManager
from gatewayfilter.proxy.mitm.http.error_answers import ErrorAnswers
from gatewayfilter.proxy.mitm.http.http1_client import GatewayHttp1Client
from gatewayfilter.proxy.mitm.http.http1_server import GatewayHttp1Server
from gatewayfilter.proxy.mitm.http.http2_flow import PatientHttp2Client
from gatewayfilter.proxy.mitm.http.http2_server import GatewayHttp2Server
from gatewayfilter.proxy.mitm.http.http_stream import GatewayHttpStream
from gatewayfilter.proxy.mitm.origin_pool import get_connection
from gatewayfilter.proxy.mitm.shared_origins import start_handshake
from gatewayfilter.proxy.mitm.upstream import CORRECTNESS, SPEED
from gatewayfilter.proxy.mitm.upstream import Replacement as _Row
from gatewayfilter.proxy.pages.block_page import BlockPages

_MESSAGE: Final = "mitmproxy.http:MessageData"
_unreadable: Final = ErrorAnswers.unreadable_request
_make_completed: Final = fast_functions.make_completed
_parse_hello: Final = hello_reader.parse_client_hello
_PageRow: Final = partial(_Row, makes_pages=True)
_HTTP: Final = "mitmproxy.proxy.layers.http:"
_HTTP1: Final = "mitmproxy.proxy.layers.http._http1:"
_TLS_MODULE: Final = "mitmproxy.proxy.layers.tls:"
_TLS: Final = f"{_TLS_MODULE}TLSLayer."
_SERVER_TLS: Final = f"{_TLS_MODULE}ServerTLSLayer."
_COMMANDS: Final = "mitmproxy.proxy.commands:"
_EVENTS: Final = "mitmproxy.proxy.events:"
_HANDLER: Final = "mitmproxy.proxy.mode_servers:ProxyConnectionHandler"
_SERVER: Final = "mitmproxy.connection:Server"
_FIELDS: Final = "mitmproxy.coretypes.multidict:_MultiDict."

REPLACEMENTS: Final[tuple[_Row, ...]] = (
    # target, attribute, replacement, needed for, upstream, digest
    _PageRow(http_layers, "Http1Server", GatewayHttp1Server, CORRECTNESS, f"{_HTTP}HttpLayer._handle_event", "f675d84e3db32385"),
    _PageRow(http_layers, "Http2Server", GatewayHttp2Server, CORRECTNESS, f"{_HTTP}HttpLayer._handle_event", "f675d84e3db32385"),
    _Row(http_layers, "Http1Client", GatewayHttp1Client, CORRECTNESS, f"{_HTTP}HttpClient._handle_event", "d5ab392f6cd39ea7"),
    _Row(http_layers, "Http2Client", PatientHttp2Client, CORRECTNESS, f"{_HTTP}HttpClient._handle_event", "d5ab392f6cd39ea7"),
    _Row(http_layers, "HttpStream", GatewayHttpStream, CORRECTNESS, f"{_HTTP}HttpLayer.make_stream", "65849da2d51c8719"),
    _Row(HttpLayer, "get_connection", get_connection, CORRECTNESS, f"{_HTTP}HttpLayer.get_connection", "735692cf8c26eb9f"),
    _Row(ServerTLSLayer, "start_handshake", start_handshake, CORRECTNESS, f"{_SERVER_TLS}start_handshake", "e375a27b7c4cc3db"),
    _PageRow(_http1, "make_error_response", _unreadable, CORRECTNESS, f"{_HTTP1}make_error_response", "1ebe7083b78d5937"),
    _Row(http.MessageData, "__post_init__", fast_functions.skip_type_checks, SPEED, _MESSAGE, "2fe4b7f15ac77ea3"),
    _Row(http.Headers, "get_all", fast_functions.get_all, SPEED, f"{_FIELDS}get_all", "1356945d45345284"),
    _Row(http.Headers, "get", fast_functions.get, SPEED, f"{_FIELDS}__getitem__", "b927da74a4b87d25"),
    _Row(http.Headers, "__contains__", fast_functions.contains, SPEED, "mitmproxy.http:Headers", "4241fa2481347a60"),
    _Row(http.Headers, "__bytes__", fast_functions.to_bytes, SPEED, "mitmproxy.http:Headers", "4241fa2481347a60"),
    _Row(flow, "uuid", fast_functions.FastIds, SPEED, "mitmproxy.flow:Flow.__init__", "cab01bf31c2f6934"),
    _Row(connection, "uuid", fast_functions.FastIds, SPEED, "mitmproxy.connection:Connection", "50467101186ae601"),
    _Row(connection.Connection, "__eq__", fast_functions.is_same, SPEED, "mitmproxy.connection:Connection", "50467101186ae601"),
    _Row(connection.Server, "__init__", fast_functions.make_server, SPEED, _SERVER, "77dc203b637f2ec6"),
    _Row(mode_servers, "ProxyConnectionHandler", FastConnectionHandler, SPEED, _HANDLER, "ea62ad6d35d9ec7e"),
    _Row(commands.StartHook, "__new__", fast_functions.make_hook, SPEED, f"{_COMMANDS}StartHook.__new__", "5fd570b9d7cfe07a"),
    _Row(events.CommandCompleted, "__new__", _make_completed, SPEED, f"{_EVENTS}CommandCompleted.__new__", "75873b88138e32ed"),
    _Row(tls_layers, "parse_client_hello", _parse_hello, SPEED, f"{_TLS_MODULE}parse_client_hello", "f2b6298062e46095"),
    _Row(TLSLayer, "receive_data", tls_path.receive_data, SPEED, f"{_TLS}receive_data", "27a803d5985345f3"),
    _Row(TLSLayer, "tls_interact", tls_path.tls_interact, SPEED, f"{_TLS}tls_interact", "bcbe8bc50bf0bafc"),
    _Row(TLSLayer, "send_data", tls_path.send_data, SPEED, f"{_TLS}send_data", "90cfb4fb55863fde"),
)  # fmt: skip
"""What this process's mitmproxy has replaced once `install` was called."""

_NOT_THERE: Final = object()
_ORIGINALS: Final = tuple(vars(row.target).get(row.attribute, _NOT_THERE) for row in REPLACEMENTS)
"""What stood in the place of each; `_NOT_THERE` where it was inherited."""


def install(pages: BlockPages, *, fast_path: bool) -> None:
    """Replaces in this process's mitmproxy with what the table holds. Idempotent; the pages given last are used.

    Args:
        pages: of the process.
        fast_path: whether what is needed for speed alone is replaced as well; if not, mitmproxy's own is put back.
    """
    errors = ErrorAnswers(pages)
    for row, original in zip(REPLACEMENTS, _ORIGINALS, strict=True):
        if fast_path or row.needed_for is CORRECTNESS:
            setattr(row.target, row.attribute, partial(row.replacement, errors) if row.makes_pages else row.replacement)
        elif original is not _NOT_THERE:
            setattr(row.target, row.attribute, original)
        elif row.attribute in vars(row.target):
            delattr(row.target, row.attribute)


class Setup:
    """The addon that prepares mitmproxy for the filter: replacements, and options without which it could be passed by.

    What is needed for speed is replaced in workers alone, not in a stock mitmdump.

    Args:
        pages: of the process.
    """

    name = "gatewayfiltersetup"

    def __init__(self, pages: BlockPages) -> None:
        self._pages = pages

    def load(self, loader: addonmanager.Loader) -> None:
        """Sets up mitmproxy: a blocked site must not be contacted before the decision."""
        install(self._pages, fast_path=isinstance(loader.master.addons, CachedAddonManager))
        options = loader.master.options
        if "connection_strategy" in options:
            options.update(connection_strategy="lazy")
        if "rawtcp" in options:
            options.update(rawtcp=False)  # mitmproxy must not guess: our next layer alone admits what is no HTTP

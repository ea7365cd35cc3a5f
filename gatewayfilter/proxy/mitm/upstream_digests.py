"""Code of mitmproxy and its libraries that proxy/ relies on without replacing it, each function with the digest of its source.

Code of ours does the work of these functions, extends them, or expects what they do. After an update of mitmproxy,
tests/proxy/mitm/test_mitmproxy_pin.py names those that changed: read them again, correct the module in the first column, then
set the new digest here. install.py has the same for what is replaced.
"""

from typing import Final

from gatewayfilter.proxy.mitm.fastpath.http2 import relied_on as http2
from gatewayfilter.proxy.mitm.upstream import Reliance

VERSION: Final = "12.2.3"
"""Of mitmproxy."""

RELIED_ON: Final[tuple[Reliance, ...]] = (
    Reliance(
        "mitm/fastpath/exchange.py",
        "does their work, and leaves them in the state in which they would be",
        "mitmproxy.proxy.layers.http._http1",
        {
            "Http1Connection._handle_event": "4ca054b2c051446b",
            "Http1Connection.read_body": "9d64abb7fef741e6",
            "Http1Connection.wait": "7ef13af59f3d1ebc",
            "Http1Connection.mark_done": "e8acdadedfadd859",
            "Http1Server.send": "eaaa373dedd307e2",
            "Http1Server.read_headers": "23fa629cea80477d",
            "Http1Server.mark_done": "0307cf95d22c41cb",
            "Http1Client.send": "842d330b8f0219fc",
            "Http1Client.read_headers": "4cdd1074c9589313",
            "should_make_pipe": "addf2e0a008175d8",
            "make_body_reader": "ebebb6e1a1e8005f",
        },
    ),
    Reliance(
        "mitm/fastpath/exchange.py",
        "does their work, and leaves them in the state in which they would be",
        "mitmproxy.proxy.layers.http",
        {
            "HttpStream.__init__": "c02d2dec3ce11192",
            "HttpStream._handle_event": "fa1829cc3921a37a",
            "HttpStream.state_wait_for_request_headers": "9cdaef99dc08cac5",
            "HttpStream.state_consume_request_body": "a1688b5f89b2417d",
            "HttpStream.flow_done": "ef4e03482aa25299",
            "HttpStream.state_wait_for_response_headers": "f84cd543373dbe32",
            "HttpStream.start_response_stream": "53813ac19b4e8a75",
            "HttpStream.state_stream_response_body": "5deadcd637f5f796",
            "HttpStream.send_response": "7b4e06f13036edbe",
            "HttpStream.state_consume_response_body": "d7819da1855fb6bb",
            "HttpStream.check_body_size": "97eed8962223617a",
            "HttpStream.check_invalid": "f24060a2e613919d",
            "HttpStream.check_killed": "ce8162a91be58671",
            "HttpStream.make_server_connection": "35c7cfe84ad70551",
            "validate_request": "7041103bf9536020",
            "GetHttpConnection.connection_spec_matches": "e36a789de70757cd",
            "HttpLayer.make_stream": "65849da2d51c8719",
            "HttpLayer.get_connection": "735692cf8c26eb9f",
        },
    ),
    Reliance(
        "mitm/fastpath/http1_heads.py",
        "parses as they do, or leaves it to them",
        "mitmproxy.net.http.http1.read",
        {
            "connection_close": "ed8b9f415b4e7329",
            "expected_http_body_size": "ab09899e300edb10",
            "_read_request_line": "3c5da1d3c8a3ed2d",
            "_read_response_line": "5979b716fe84f3d0",
            "_read_headers": "696306d502f0ac58",
            "read_request_head": "326ba9d2db575401",
            "read_response_head": "27d7b9c850dc2b03",
        },
    ),
    Reliance(
        "mitm/fastpath/http1_heads.py",
        "parses as they do, or leaves it to them",
        "mitmproxy.net.http.validate",
        {"validate_headers": "0d39fdba9ab913af"},
    ),
    Reliance(
        "mitm/fastpath/http1_heads.py",
        "parses as they do, or leaves it to them",
        "mitmproxy.net.http.url",
        {"parse": "2437844d1a00e8a7"},
    ),
    Reliance(
        "mitm/fastpath/response.py",
        "counts down what remains of a body",
        "h11._readers",
        {"ContentLengthReader": "f4d6518c4aedb18e"},
    ),
    Reliance(
        "mitm/fastpath/http_layer.py",
        "does its work with a list; skips the stream of an open tunnel",
        "mitmproxy.proxy.layers.http",
        {
            "HttpLayer.event_to_child": "13f04830ea4671bf",
            "HttpLayer.register_connection": "2b36125b791320d4",
            "HttpStream.passthrough": "659d1c78b20c88cb",
        },
    ),
    Reliance(
        "mitm/fastpath/steps.py",
        "finds the layer behind a shell; pauses layers, `command.blocking = self` marks it; beginning.py chooses as NextLayer",
        "mitmproxy.proxy.layer",
        {
            "Layer.__init__": "87fe7850690de5a5",
            "Layer.handle_event": "8477335124af6b29",
            "Layer.__process": "90323075f1348db1",
            "NextLayer": "d906978b0d59fd83",
        },
    ),
    Reliance(
        "mitm/fastpath/tunnel_layer.py",
        "does what follows a CONNECT with the layers that this one makes",
        "mitmproxy.proxy.layers.http",
        {"HttpStream.handle_connect_regular": "977dd088285e7b6d"},
    ),
    Reliance(
        "mitm/fastpath/connection_handler.py",
        "serves a client as it does, in one task and with a timer",
        "mitmproxy.proxy.server",
        {
            "LiveConnectionHandler.__init__": "7c98652ee306d53a",
            "TimeoutWatchdog": "c369d9acd4797ef4",
            "ConnectionHandler.handle_client": "a460e7dd21798856",
        },
    ),
    Reliance(
        "mitm/fastpath/steps.py",
        "finds the layer behind a shell",
        "mitmproxy.proxy.layers.modes",
        {
            "HttpProxy": "1643d71cc84198db",
            "HttpUpstreamProxy": "cf8c2e9e240d64ef",
            "DestinationKnown.finish_start": "1d052c17a70aad58",
        },
    ),
    Reliance(
        "mitm/fastpath/steps.py",
        "finds the layer behind a shell",
        "mitmproxy.proxy.layers.http",
        {"HttpClient": "73c48829eb70e450"},
    ),
    Reliance(
        "mitm/fastpath/tls_path.py",
        "hands data on as they do",
        "mitmproxy.proxy.tunnel",
        {
            "TunnelLayer._handle_event": "bcda5d00c5bab56b",
            "TunnelLayer._handle_command": "7ff30eefc956d7a8",
            "TunnelLayer.event_to_child": "a79d12d158de6164",
        },
    ),
    Reliance(
        "mitm/fastpath/hello_reader.py",
        "reads the same fields, and makes the same object in another way",
        "mitmproxy.tls",
        {"ClientHello": "0948fef1cd8adf65"},
    ),
    Reliance(
        "mitm/fastpath/hello_reader.py",
        "reads the same fields, and makes the same object in another way",
        "mitmproxy.contrib.kaitaistruct.tls_client_hello",
        {"TlsClientHello": "0b3d29b0a2a98bad"},
    ),
    Reliance(
        "mitm/fastpath/tls_path.py",
        "hands data on as it does",
        "mitmproxy.proxy.layers.tls",
        {"ServerTLSLayer.event_to_child": "9e5754069767bd86"},
    ),
    Reliance(
        "mitm/fastpath/tls_path.py",
        "reads and writes records as they do",
        "OpenSSL.SSL",
        {
            "Connection.recv": "9793e3b9d4a91e2d",
            "Connection.bio_read": "5331891c16f2a450",
            "Connection.bio_write": "d2c02ac2fe393c84",
            "Connection.sendall": "8b93ff4fc70a5da3",
        },
    ),
    Reliance(
        "mitm/fastpath/context.py",
        "a fork has the same attributes; options are read as attributes",
        "mitmproxy.proxy.context",
        {
            "Context.__init__": "e3d217200f03c1b6",
            "Context.fork": "fb0d6d83857891a2",
        },
    ),
    Reliance(
        "mitm/fastpath/context.py",
        "a fork has the same attributes; options are read as attributes",
        "mitmproxy.optmanager",
        {
            "OptManager.__init__": "5e1d2e652208f152",
            "OptManager.__getattr__": "b18adfeb717197d3",
            "OptManager.keys": "8f99b81b962ffcb9",
        },
    ),
    Reliance(
        "mitm/fastpath/hook_runner.py",
        "runs the same methods in the same order",
        "mitmproxy.addonmanager",
        {
            "traverse": "7235ad007525990a",
            "AddonManager.add": "d92afbc8e470dede",
            "AddonManager.remove": "330ea67a684442e5",
            "AddonManager.clear": "955da4e3ae65328b",
            "AddonManager.handle_lifecycle": "5975604ee789b1a2",
            "AddonManager._iter_hooks": "3272db94de93ff9e",
            "AddonManager.invoke_addon": "a050cb56056ef9a4",
            "AddonManager.trigger_event": "31ac3d2c14cecbca",
        },
    ),
    Reliance(
        "mitm/fastpath/hook_runner.py",
        "a deferred hook comes back to the addon manager; the top layer gets each event",
        "mitmproxy.proxy.mode_servers",
        {"ProxyConnectionHandler.handle_hook": "ed5dcb7ade7e07a5"},
    ),
    Reliance(
        "mitm/fastpath/direct_reader.py",
        "takes the place of the stream; keeps order and back pressure; adoption.py opens connections as `open_connection`",
        "mitmproxy.proxy.server",
        {
            "ConnectionHandler.__init__": "f695401fcc32e556",
            "ConnectionHandler.handle_connection": "f9faab6ad3ed5b81",
            "ConnectionHandler.server_event": "ffbed451b4933f30",
            "ConnectionHandler.drain_writers": "ebc2aaba7eb47e24",
            "ConnectionHandler.open_connection": "cef8d73a19a787df",
        },
    ),
    Reliance(
        "mitm/http/http_stream.py",
        "replaces or begins with these steps",
        "mitmproxy.proxy.layers.http",
        {
            "HttpStream.start_request_stream": "bd6f3e711bd80f44",
            "HttpStream.handle_protocol_error": "16ebb14649f2940b",
        },
    ),
    Reliance(
        "mitm/http",
        "the classes extend these methods",
        "mitmproxy.proxy.layers.http._http1",
        {
            "Http1Connection": "189b9b19ec6e5f23",
            "Http1Server": "9e550fe0dd2d4d1a",
            "Http1Client": "10f647665585379b",
        },
    ),
    Reliance(
        "mitm/http",
        "the classes extend these methods",
        "mitmproxy.proxy.layers.http._http2",
        {
            "Http2Connection": "e9f8df4933bc5067",
            "Http2Server": "3cfb5e6a503c9b06",
            "Http2Client": "c96b2aa473a126bd",
        },
    ),
    Reliance(
        "mitm/http",
        "the classes extend these methods",
        "mitmproxy.proxy.layers.http._http_h2",
        {"BufferedH2Connection": "7e27ce554c9c1071"},
    ),
    Reliance(
        "mitm/http/http2_bounds.py",
        "measures what h2 keeps of unfinished frames",
        "h2.frame_buffer",
        {"FrameBuffer": "4cae042dbef2bbd9"},
    ),
    Reliance(
        "mitm/http/http2_bounds.py",
        "counts the frames that h2 answers without an event",
        "h2.connection",
        {
            "H2Connection._receive_frame": "708c453e450f5799",
            "H2Connection._handle_data_on_closed_stream": "7f84231d73858688",
            "H2Connection._stream_is_closed_by_reset": "c06ce489de24fcaa",
        },
    ),
    Reliance(
        "mitm/next_layer.py",
        "chooses layers in its place, before it; AddonHalt keeps it from guessing",
        "mitmproxy.addons.next_layer",
        {"NextLayer": "39e7850e83f5a6e7"},
    ),
    Reliance(
        "mitm/next_layer.py",
        "recognises TLS by the same bytes",
        "mitmproxy.net.tls",
        {"starts_like_tls_record": "d01ab41df1dc6fcd"},
    ),
    Reliance(
        "mitm/next_layer.py",
        "these make layers without calling the addon",
        "mitmproxy.proxy.layers.http",
        {
            "HttpStream.handle_connect": "b95b35f62d16828e",
            "HttpStream.handle_connect_upstream": "0d35a3eae1b949b2",
            "HttpStream.handle_connect_finish": "af91ca9350a351da",
        },
    ),
    Reliance(
        "mitm/next_layer.py",
        "are made for connections that pass unread, or by TLS",
        "mitmproxy.proxy.layers.tcp",
        {"TCPLayer": "6c54a263c1dc9aa3"},
    ),
    Reliance(
        "mitm/next_layer.py",
        "are made for connections by TLS; fastpath/beginning.py does the work of `receive_handshake_data`",
        "mitmproxy.proxy.layers.tls",
        {"ClientTLSLayer": "49ca18ac451dac18"},
    ),
    Reliance(
        "mitm/server.py",
        "`listen` and `make_top_layer` are its places for another listener and top layer",
        "mitmproxy.proxy.mode_servers",
        {
            "ServerInstance.__init_subclass__": "05cb4b743ce76a53",
            "ServerInstance.handle_stream": "84b984e0472ccf7a",
            "AsyncioServerInstance": "024a2a51a2d48f38",
            "RegularInstance": "bf570354a91a711d",
            "UpstreamInstance": "0092e10d1fc77a6f",
            "TransparentInstance": "0db2f3194b33d140",
        },
    ),
    Reliance(
        "mitm/server.py",
        "registers connections and servers",
        "mitmproxy.addons.proxyserver",
        {
            "Servers": "3082274352ae4bee",
            "Proxyserver.register_connection": "5931cda9c5173a73",
            "Proxyserver.server_connect": "592659e57b838a50",
        },
    ),
    Reliance(
        "mitm/tls_config.py",
        "widens the certificate store, and configures connections in place of mitmproxy from the second on",
        "mitmproxy.addons.tlsconfig",
        {
            "TlsConfig.configure": "b4fb07629123607e",
            "TlsConfig.tls_start_client": "96d1887f84eee4e4",
            "TlsConfig.tls_start_server": "7ec96721e0442d9f",
            "TlsConfig.get_cert": "e4add8890d1832b5",
            "TlsConfig.request": "e99adad4b83acec8",
            "alpn_select_callback": "e96eb9bbe4a4bdfe",
        },
    ),
    Reliance(
        "mitm/tls_config.py",
        "makes the certificate store that is widened",
        "mitmproxy.certs",
        {
            "CertStore.__init__": "aa7ffbbc978c50d0",
            "CertStore.expire": "ef761a0c20d68a4e",
            "CertStore.get_cert": "fbbd972c83c2e6b0",
        },
    ),
    Reliance(
        "mitm/shared_origins.py",
        "takes a connection from its task before its client's end; another client's task opens it",
        "mitmproxy.proxy.server",
        {"ConnectionHandler.handle_client": "a460e7dd21798856"},
    ),
    Reliance(
        "mitm/shared_origins.py",
        "begins a layer whose handshake is done",
        "mitmproxy.proxy.tunnel",
        {"TunnelLayer._handshake_finished": "8b2bba7d252cee63"},
    ),
    Reliance(
        "mitm/shared_origins.py",
        "begins a layer whose handshake is done; fastpath/beginning.py takes the steps of one",
        "mitmproxy.proxy.layers.tls",
        {"TLSLayer.start_tls": "c0abce4564814890", "TLSLayer.receive_handshake_data": "f6eb20aba0ee5071"},
    ),
    Reliance(
        "listener/listener.py",
        "hands over connections after their first bytes were read",
        "mitmproxy.proxy.server",
        {"ConnectionHandler.handle_client": "a460e7dd21798856"},
    ),
    Reliance(
        "listener/connection_deadlines.py",
        "ends connections as it does",
        "mitmproxy.proxy.server",
        {"ConnectionHandler.on_timeout": "05db80a3824df86f"},
    ),
    *http2.RELIED_ON,
)
"""In the order of the path of a request through proxy/mitm/, then the modules outside of it."""

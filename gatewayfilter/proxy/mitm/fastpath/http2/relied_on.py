"""Code of mitmproxy, h2 and hpack that the fast path of HTTP/2 relies on: rows of mitm/upstream_digests.py."""

from typing import Final

from gatewayfilter.proxy.mitm.upstream import Reliance

RELIED_ON: Final[tuple[Reliance, ...]] = (
    Reliance(
        "mitm/fastpath/http2/exchange.py",
        "does their work, and leaves them in the state in which they would be",
        "mitmproxy.proxy.layers.http._http2",
        {
            "Http2Connection._handle_event": "d25fba067665cdd8",
            "Http2Connection.handle_h2_event": "ff3c90eff5b9704a",
            "Http2Connection.is_closed": "b19a22f0974d698d",
            "Http2Connection.is_open_for_us": "ba22e293cbc392e7",
            "Http2Server._handle_event": "97fbe94c6f92487e",
            "Http2Server.handle_h2_event": "76691181208ce656",
            "Http2Client._handle_event": "5f171af55ea44bf0",
            "Http2Client._handle_event2": "574f84f03eee7a07",
            "Http2Client.handle_h2_event": "5a33b6db9325f315",
            "format_h2_request_headers": "6e0c2d94c6739a54",
            "format_h2_response_headers": "08ef28bb5695302b",
            "normalize_h2_headers": "d68a767ce133ecdb",
            "split_pseudo_headers": "44f0a9865fac7a34",
            "parse_h2_request_headers": "3b472fcd96e294c8",
            "parse_h2_response_headers": "80c71186010a8c8b",
        },
    ),
    Reliance(
        "mitm/fastpath/http2/frames.py",
        "sends parts of bodies as it does, and leaves what waits to it",
        "mitmproxy.proxy.layers.http._http_h2",
        {
            "BufferedH2Connection": "7e27ce554c9c1071",
        },
    ),
    Reliance(
        "mitm/fastpath/http2/exchange.py",
        "does their work, and leaves them in the state in which they would be",
        "h2.connection",
        {
            "H2ConnectionStateMachine": "3ea75d3f64bd4a79",
            "H2Connection.__init__": "315111fdee08d2db",
            "H2Connection._open_streams": "66457402bf01150f",
            "H2Connection._begin_new_stream": "c95dd00601f44f19",
            "H2Connection.get_next_available_stream_id": "0df6e6892e0df730",
            "H2Connection.send_headers": "fb24e9f996226a14",
            "H2Connection.send_data": "f8ff315da17e448b",
            "H2Connection.end_stream": "27cf46b9a0112ebf",
            "H2Connection.acknowledge_received_data": "8171704daa79b30f",
            "H2Connection.receive_data": "4afdf226b54192c7",
            "H2Connection._receive_frame": "708c453e450f5799",
            "H2Connection._receive_headers_frame": "1805424cac9a04c0",
            "H2Connection._receive_data_frame": "bc5c0571156a904f",
            "H2Connection._receive_window_update_frame": "f39726c3f871cd73",
            "H2Connection._receive_priority_frame": "a6c9cbae45db0ef6",
            "H2Connection._stream_closed_by": "b149e6c44fe8fc83",
            "_decode_headers": "b2eedf1fd0f3bf4a",
        },
    ),
    Reliance(
        "mitm/fastpath/http2/exchange.py",
        "does their work, and leaves them in the state in which they would be",
        "h2.stream",
        {
            "H2StreamStateMachine": "f92f8ecd0cbad6c0",
            "H2Stream": "d95d039a3e9d4a6b",
        },
    ),
    Reliance(
        "mitm/fastpath/http2/frames.py",
        "counts what was received",
        "h2.windows",
        {
            "WindowManager": "57cc99f945524e7e",
        },
    ),
    Reliance(
        "mitm/fastpath/http2/exchange.py",
        "keeps the beginning of a frame there",
        "h2.frame_buffer",
        {
            "FrameBuffer": "4cae042dbef2bbd9",
        },
    ),
    Reliance(
        "mitm/fastpath/http2/heads.py",
        "refuses what they refuse, or leaves it to them",
        "h2.utilities",
        {
            "validate_headers": "de4258a6e73bcce7",
            "_reject_illegal_characters": "e7f33fd471060825",
            "_reject_empty_header_names": "308d32c7e665823c",
            "_reject_te": "4786f8a69d1ba9f2",
            "_reject_connection_header": "8cfefbb032fd9e24",
            "_reject_pseudo_header_fields": "718b04c01501e54b",
            "_check_pseudo_header_field_acceptability": "b33b786bd6265e68",
            "_validate_host_authority_header": "b70b4c8de278340c",
            "_check_path_header": "f1401652eacde2d8",
        },
    ),
    Reliance(
        "mitm/fastpath/http2/heads.py",
        "reads names as it does",
        "mitmproxy.net.http.url",
        {
            "parse_authority": "b1c5af10dbda9b8e",
        },
    ),
    Reliance(
        "mitm/fastpath/http2/hpack_codec.py",
        "stands in for them",
        "hpack.hpack",
        {
            "Decoder": "4310120cf45427a7",
            "Encoder": "8d460837857d1efd",
        },
    ),
    Reliance(
        "mitm/fastpath/http2/hpack_codec.py",
        "takes its entries over",
        "hpack.table",
        {
            "HeaderTable": "a97dc74fc4f69064",
        },
    ),
    Reliance(
        "mitm/http/upgrades.py",
        "looks at a request by it where that may ask for HTTP/2 without TLS",
        "mitmproxy.addons.disable_h2c",
        {"DisableH2C": "a8cb8778055faabe"},
    ),
)

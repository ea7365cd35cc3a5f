"""The lines of squid's helper protocols: requests of external_acl and url_rewrite, and the answers.

A line has the number of its channel in front where squid is configured with `concurrency=`. squid leaves escapes of URLs as they
are, so that they are not undone here; in `rewrite` it sends bytes of URLs that it does not like as they came.

=========  ===================================================================================================
protocol   line
=========  ===================================================================================================
`acl`      `[CHANNEL] CLIENT USER METHOD URL [REFERER [SEC-FETCH-DEST [ACCEPT]]]`, `-` for what is missing
`rewrite`  `[CHANNEL] URL CLIENT/NAME USER METHOD [ref=REFERER] [dest=SEC-FETCH-DEST] [accept=ACCEPT] …`
=========  ===================================================================================================

Source: squid's documentation of `external_acl_type`, `url_rewrite_program` and the helper protocol.
"""

from typing import Final
from urllib.parse import quote, unquote

from gatewayfilter.integration.request_decider import AskedRequest, Decision
from gatewayfilter.integration.squid.channels import HelperProtocol, block_page_url, split_channel
from gatewayfilter.model import Verdict

_LONGEST_SHOWN: Final = 1_000


class HelperLines:
    """Reads requests and writes answers of one protocol.

    Args:
        protocol: of the connection.
        block_url: of the block page for `rewrite`; `url`, `reason`, `category` and `client` are added to its query.
    """

    def __init__(self, protocol: HelperProtocol, block_url: str = "") -> None:
        self._read = _read_acl if protocol is HelperProtocol.ACL else _read_rewrite
        self._is_acl = protocol is HelperProtocol.ACL
        self._block_url = block_url

    def read(self, line: bytes) -> tuple[bytes, AskedRequest | None]:
        """Returns the channel with the blank behind it, and the request; `None` for a line that holds none."""
        channel, rest = split_channel(line)
        text = rest.decode("ascii") if rest.isascii() else _escaped(rest)
        return channel, self._read(text.split(" "))  # at blanks alone: URLs may hold other characters that part words

    def answer(self, channel: bytes, decision: Decision, asked: AskedRequest | None) -> bytes:
        """Returns the line that answers a request."""
        verdict = decision.verdict
        ttl = b" ttl=%d" % decision.ttl_s if decision.ttl_s else b""
        if not verdict.blocked:
            return channel + (b"OK" if self._is_acl else b"ERR") + ttl + b"\n"
        if self._is_acl:
            code = verdict.reason.value + (f"/{verdict.category}" if verdict.category else "")
            named = quote(verdict.source_list or "-", safe="").encode()
            return b"%bERR message=%b log=%b%b\n" % (channel, quote(code, safe="").encode(), named[:_LONGEST_SHOWN], ttl)
        return b'%bOK status=302 url="%b"%b\n' % (channel, self._page(verdict, asked).encode(), ttl)

    def _page(self, verdict: Verdict, asked: AskedRequest | None) -> str:
        facts = {
            "url": asked.url[:_LONGEST_SHOWN] if asked is not None else "",
            "reason": verdict.reason.value,
            "category": verdict.category,
            "client": asked.client if asked is not None else "",
        }
        return block_page_url(self._block_url, facts)


def _read_acl(fields: list[str]) -> AskedRequest | None:
    if len(fields) < 4:
        return None
    referer, destination, accept = [_present(field) for field in [*fields[4:], "", "", ""][:3]]
    return AskedRequest(fields[3], _present(fields[0]), _value(fields[1]), fields[2], referer, destination, accept)


def _read_rewrite(fields: list[str]) -> AskedRequest | None:
    if len(fields) < 4:
        return None
    more = dict(field.partition("=")[::2] for field in fields[4:20])
    referer, destination, accept = [_value(more.get(name, "")) for name in ("ref", "dest", "accept")]
    client = fields[1].partition("/")[0]
    return AskedRequest(fields[0], _present(client), _value(fields[2]), fields[3], referer, destination, accept)


def _escaped(line: bytes) -> str:
    """Returns a line with escapes in place of its bytes beyond ASCII, which a URL means by them."""
    return "".join(chr(byte) if byte < 0x80 else f"%{byte:02X}" for byte in line)


def _present(text: str) -> str:
    return "" if text == "-" else text


def _value(text: str) -> str:
    if text == "-":
        return ""
    return unquote(text) if "%" in text else text

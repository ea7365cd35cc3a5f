"""The header coding of an HTTP/2 connection: compiled where it can be, else hpack's own.

hpack reads and writes a string's Huffman code in Python, a third of what a request over HTTP/2 cost. No maintained library has
HPACK compiled for Python.

Source: RFC 7541. tests/proxy/mitm/fastpath/http2/test_hpack_codec.py holds it against hpack.
"""

from collections.abc import Iterable
from typing import Any, Final, Protocol, cast

import hpack
from h2.connection import H2Connection

from gatewayfilter.compiled import load
from gatewayfilter.proxy.mitm.http.header_table import BoundedEncoder
from gatewayfilter.proxy.mitm.upstream import set_on

UNREADABLE: Final = (hpack.HPACKError, IndexError, TypeError)
"""What reading a block may end with, as h2 expects it."""
_compiled: Final = load("gatewayfilter.proxy.mitm.fastpath.http2._hpack")


class ReadsTwice(Protocol):
    """A decoder that can be given back what it has read, for h2 to get it once more."""

    again: object
    """Fields, or the error of reading them: what the next call of `decode` ends with. `None` where it is to read."""

    def decode(self, data: bytes, *, raw: bool) -> Iterable[tuple[bytes, bytes]]:
        """Returns the fields of a block."""
        ...


class PlainDecoder(hpack.Decoder):
    """hpack's decoder, which can be given back what it has read."""

    again: Any = None

    def decode(self, data: bytes, raw: bool = False) -> Iterable[hpack.HeaderTuple]:  # noqa: FBT001, FBT002  as hpack's
        """Returns the fields of a block."""
        again, self.again = self.again, None
        if isinstance(again, Exception):
            raise again
        return super().decode(data, raw) if again is None else cast("list[hpack.HeaderTuple]", again)


def decoder_of(connection: H2Connection) -> ReadsTwice:
    """Returns the decoder of a connection, which from now on is one that reads twice."""
    old: Any = connection.decoder
    if type(old) is not hpack.Decoder:
        return cast("ReadsTwice", old)
    made: Any = (PlainDecoder if _compiled is None else _compiled.Decoder)(old.max_header_list_size)
    made.max_allowed_table_size = old.max_allowed_table_size
    if _compiled is None:
        made.header_table = old.header_table
    else:
        made.load(old.header_table_size, list(reversed(old.header_table.dynamic_entries)))
    set_on(connection, "decoder", made)
    return cast("ReadsTwice", made)


def speed_up_encoder(connection: H2Connection) -> None:
    """Gives a connection the compiled encoder, with the table that its own has."""
    old: Any = connection.encoder
    if _compiled is None or type(old) is not BoundedEncoder:
        return
    made = _compiled.Encoder()
    made.load(old.header_table_size, list(reversed(old.header_table.dynamic_entries)), list(old.table_size_changes))
    set_on(connection, "encoder", made)

"""The table of header fields that an HTTP/2 connection keeps for the other side (RFC 7541 §4.2), which bounds it alone in hpack.

A peer may allow 4 GB of fields that it has seen. It need not be that much: the encoder chooses. hpack also forgets to tell of a
change that the peer sets twice before the first head, and both tables differ from then on.
"""

from typing import Final

import hpack
from h2.connection import H2Connection

from gatewayfilter.proxy.mitm.upstream import set_on

MOST_BYTES: Final = 65_536


class BoundedEncoder(hpack.Encoder):
    """hpack's encoder with a table of at most `MOST_BYTES`."""

    @property
    def header_table_size(self) -> int:
        """Bytes of the table."""
        return int(self.header_table.maxsize)

    @header_table_size.setter
    def header_table_size(self, value: int) -> None:
        bounded = min(value, MOST_BYTES)
        if bounded != self.header_table.maxsize:
            self.header_table.maxsize = bounded
            self.table_size_changes = told_sizes(self.table_size_changes, bounded)


def told_sizes(untold: list[int], size: int) -> list[int]:
    """Returns what the next head tells of sizes: the smallest and the last of them (RFC 7541 §4.2), however many there were."""
    smallest = min([*untold, size])
    return [smallest, size] if smallest < size else [size]


def bound_table(connection: H2Connection) -> None:
    """Gives a connection that has sent no head yet an encoder whose table is bounded."""
    encoder = BoundedEncoder()
    encoder.header_table_size = connection.encoder.header_table_size
    set_on(connection, "encoder", encoder)

"""A device on the network, as it was seen."""

from typing import NamedTuple


class Device(NamedTuple):
    """A device of the neighbour table.

    Attributes:
        address: canonical.
        mac: of its interface then.
        name: host name, as it claims, `""` when none is known.
        first_at, last_at: Unix seconds.
    """

    address: str
    mac: str
    name: str
    first_at: float
    last_at: float

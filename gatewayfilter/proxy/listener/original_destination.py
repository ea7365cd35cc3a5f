"""Where a connection led before the firewall redirected it here."""

import socket

from mitmproxy import platform


def original_destination(client: socket.socket) -> tuple[str, int]:
    """Returns address and port, for IPv4 and IPv6.

    Raises:
        OSError: the system does not tell.
    """
    if platform.original_addr is None:
        raise OSError("this system does not tell where a redirected connection led")
    address, port = platform.original_addr(client)
    return str(address), int(port)

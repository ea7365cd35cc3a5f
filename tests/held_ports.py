"""Ports on loopback that are held between their choice and their use: nobody else gets them meanwhile."""

import socket

HOST = "127.0.0.1"


def hold_port(port: int = 0) -> socket.socket:
    """Returns a socket that is bound to a port, and does not listen: who connects to it is refused.

    The kernel gives the port to nobody who asks for any. A server that asks for this one with SO_REUSEADDR, as nearly all do, may
    listen on it, and again after its end, while the socket is open.

    Args:
        port: which one; 0 for any that is free.

    Raises:
        OSError: it is taken.
    """
    held = socket.socket()
    try:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind((HOST, port))
    except OSError:
        held.close()
        raise
    return held


def port_of(held: socket.socket) -> int:
    """Returns the port that a socket holds."""
    return int(held.getsockname()[1])

"""The reservation of the address that all proxy workers share."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from gatewayfilter.config import Settings, split_address
from gatewayfilter.errors import StartupError


@contextmanager
def reserve_address(settings: Settings) -> Iterator[Settings]:
    """Makes sure that the address is ours, and holds it while the workers come and go.

    The workers listen with SO_REUSEPORT. A socket that is bound but does not listen keeps the port, so that a free one taken
    for port 0 stays the same over restarts and no other process takes it in between.

    Yields:
        The settings with the port that is really used.

    Raises:
        StartupError: the port is in use, or the address is not of this machine.
    """
    host, port = split_address(settings.proxy.listen)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        # Without SO_REUSEPORT the kernel refuses a port that any other process uses, with or without SO_REUSEPORT of theirs.
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
            port = int(probe.getsockname()[1])
        # No SO_REUSEADDR here: with it, any process that sets it could bind the port while no worker listens.
        holder = socket.socket(family, socket.SOCK_STREAM)
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        holder.bind((host, port))
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise StartupError(f"cannot listen on {settings.proxy.listen}: {reason.lower()}; choose another with --listen") from error
    with holder:
        shown = f"[{host}]:{port}" if family == socket.AF_INET6 else f"{host}:{port}"
        proxy = settings.proxy.model_copy(update={"listen": shown})
        yield settings.model_copy(update={"proxy": proxy})

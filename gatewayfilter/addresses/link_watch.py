"""The interfaces of this machine as they are now: read at the start of a process, and again whenever the kernel reports a change.

A thread waits for the kernel's reports, so that whoever asks reads an attribute and never waits. Without reports (another system,
a sandbox) the tables are read once a minute.
"""

import logging
import os
import select
import socket
import threading
import time
from collections.abc import Callable
from functools import cache
from ipaddress import ip_address
from typing import Final

from gatewayfilter.addresses.kinds import Kind, kind_of
from gatewayfilter.addresses.links import NO_LINKS, Links
from gatewayfilter.addresses.rtnetlink import changes, read_links

_log = logging.getLogger(__name__)

_EVERY_S: Final = 60.0
_SETTLE_S: Final = 0.2
"""Changes come in bursts; a router with many routes must not keep the thread busy."""
_MOST_REMEMBERED: Final = 4096


class LinkWatch:
    """Keeps the interfaces up to date.

    Args:
        read: reads them; may raise `OSError`, which keeps what was read before.

    Attributes:
        links: what was read last. The same object as long as nothing has changed.
    """

    def __init__(self, read: Callable[[], Links] = read_links) -> None:
        self._read = read
        self._complained = False
        self.links = NO_LINKS
        self.refresh()

    def refresh(self) -> None:
        """Reads the interfaces anew. Takes about a millisecond."""
        try:
            found = self._read()
        except OSError as error:
            if not self._complained:
                self._complained = True
                _log.warning("the addresses of this machine cannot be read (%s): of its own only loopback is known", error)
            return
        if found != self.links:
            self.links = found

    def start(self) -> None:
        """Begins to follow changes, in a thread of its own that ends with the process."""
        threading.Thread(target=self._follow, name="link-watch", daemon=True).start()

    def _follow(self) -> None:
        line = changes()
        self.refresh()  # what changed before anybody listened
        while True:
            _wait(line)
            self.refresh()


def _wait(line: socket.socket | None) -> None:
    """Waits until the kernel reports a change, but at most `_EVERY_S`."""
    ready, _, _ = select.select([line] if line is not None else [], [], [], _EVERY_S)
    if line is None or not ready:
        return
    time.sleep(_SETTLE_S)
    while True:
        try:
            line.recv(65_536)
        except BlockingIOError:
            return
        except OSError:  # more reports than the kernel keeps (ENOBUFS): all are about to be read anyway
            continue


@cache
def _watch() -> LinkWatch:
    found = LinkWatch()
    found.start()
    return found


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_watch.cache_clear)  # threads do not survive a fork


def current_links() -> Links:
    """Returns the interfaces of this machine. The first call in a process reads them, about a millisecond."""
    return _watch().links


class PerLinks[K, V]:
    """A function of the interfaces and of something else, each result remembered while the interfaces stay the same.

    Args:
        work_out: the function.
        links: returns the interfaces of this machine.
    """

    def __init__(self, work_out: Callable[[K, Links], V], links: Callable[[], Links]) -> None:
        self._work_out = work_out
        self._links = links
        self._of = NO_LINKS
        self._known: dict[K, V] = {}

    def __call__(self, key: K) -> V:
        """Returns the result for `key`."""
        links = self._links()
        if links is not self._of or len(self._known) >= _MOST_REMEMBERED:
            self._known, self._of = {}, links
        try:
            return self._known[key]
        except KeyError:
            found = self._known[key] = self._work_out(key, links)
            return found


def kind_of_text(text: str, links: Links) -> Kind:
    """Returns the kind of an address, which may have a zone (`fe80::1%eth0`); `Kind.OWN` for what is no address."""
    try:
        return kind_of(ip_address(text), links)
    except ValueError:
        return Kind.OWN

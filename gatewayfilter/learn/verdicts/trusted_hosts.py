"""Trusted hosts: popular and public-service hosts, whose pages are not blocked by words alone.

Files that the operator chose: `rank,host` (the form of the Tranco list and its like) or one host a line. They are read again
when they change. Of each host 8 bytes of a hash are held: a million hosts take 8 MB, and another host is taken for one of them
with a probability of 1 in 18 million million.
"""

import logging
import re
import threading
import time
from array import array
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gatewayfilter.errors import ConfigError, UrlError
from gatewayfilter.learn.verdicts.public_service import public_service_suffix
from gatewayfilter.learn.verdicts.user_content_hosts import UserContentHosts
from gatewayfilter.urls import canonical_host, host_suffixes, is_ip_literal, is_public_suffix, registrable_domain

_log = logging.getLogger(__name__)

MOST_LINES: Final = 1_000_000
"""Lines of a file that are read; those behind are the less popular ones."""
MOST_CHARACTERS: Final = 300
"""Of a line; a host has 253 at most. What is longer counts as several lines."""
CHECK_EVERY_S: Final = 5.0
_NAME = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})+")

type _Hashes = NDArray[np.uint64]
type _Signature = tuple[int, int, int] | None


class TrustedHosts:
    """Returns why the pages of a host are not blocked by words alone.

    An entry covers the host and its subdomains, but a public suffix (`github.io`) covers no site below it. Hosts with content
    of their users are not trusted: one page of theirs is no evidence about the next.

    Args:
        files: the lists.
        public_service: whether hosts of governments, universities and armed forces are trusted too.
        user_content: hosts with content of their users.
        clock: seconds, monotonic.

    Raises:
        ConfigError: a file cannot be read, or holds no hosts. Later, the last good state stays in use and a warning is logged.
    """

    def __init__(
        self,
        files: Sequence[Path] = (),
        *,
        public_service: bool = True,
        user_content: UserContentHosts | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._files = tuple(files)
        self._public_service = public_service
        self._user_content = user_content or UserContentHosts(())
        self._clock = clock
        self._one = threading.Lock()
        self._look_at = clock() + CHECK_EVERY_S
        self._signatures = {path: _signature(path) for path in self._files}
        self._known = {path: read_hosts(path) for path in self._files}

    def reason_of(self, host: str) -> str:
        """Returns why a canonical host is trusted, `""` for one that is not."""
        if is_ip_literal(host) or self._user_content.holds(host):
            return ""
        if self._public_service and (suffix := public_service_suffix(host)):
            return f"{host} is a public-service host (.{suffix})"
        self._follow()
        if not self._known or is_public_suffix(host):
            return ""
        names = host_suffixes(host)
        names = names[: names.index(registrable_domain(host)) + 1]
        for name in names:
            mark = np.uint64(_mark(name))
            for path, hashes in self._known.items():
                at = int(np.searchsorted(hashes, mark))
                if at < len(hashes) and hashes[at] == mark:
                    return f"{name} is a trusted host by {path.name}"
        return ""

    def _follow(self) -> None:
        """Starts reading what has changed; pages are judged by the hosts read before until then."""
        if self._clock() < self._look_at or not self._one.acquire(blocking=False):
            return
        self._look_at = self._clock() + CHECK_EVERY_S
        changed = {path: signature for path in self._files if (signature := _signature(path)) != self._signatures[path]}
        if changed:
            self._signatures |= changed  # before they are read: a change meanwhile is read again
            threading.Thread(target=self._read, args=(list(changed),), name="trusted-hosts", daemon=True).start()
        else:
            self._one.release()

    def _read(self, changed: Sequence[Path]) -> None:
        try:
            for path in changed:
                try:
                    self._known = {**self._known, path: read_hosts(path)}
                except ConfigError as error:
                    _log.warning("%s; the hosts read before stay trusted", error)
        finally:
            self._one.release()


def read_hosts(path: Path) -> _Hashes:
    """Returns the hashes of a file's hosts, ascending and each once, of its first `MOST_LINES` lines.

    Raises:
        ConfigError: it cannot be read, or less than half of its lines are hosts.
    """
    marks = array("Q")
    first_bad, bad = 0, 0
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            lines = islice(iter(partial(file.readline, MOST_CHARACTERS), ""), MOST_LINES)
            for number, line in enumerate(lines, 1):
                text = line.strip("\ufeff \t\r\n")
                if not text or text.startswith("#"):
                    continue
                host = _host_of(text)
                if host:
                    marks.append(_mark(host))
                else:
                    first_bad, bad = first_bad or number, bad + 1
    except OSError as error:
        raise ConfigError(f"learn.trusted_hosts: cannot read {path}: {error.strerror}") from error
    if bad > len(marks):
        raise ConfigError(f"learn.trusted_hosts: {path}, line {first_bad}: neither a host nor `rank,host`")
    if bad:
        _log.warning("%s: %d lines are no hosts, the first is line %d; they are left out", path, bad, first_bad)
    return np.unique(np.frombuffer(marks, dtype=np.uint64)) if marks else np.empty(0, dtype=np.uint64)


def _host_of(text: str) -> str:
    """Returns the host of a line in canonical form, `""` for none."""
    name = text.rpartition(",")[2].strip(" \t\"'").rstrip(".").lower()
    if not name.isascii():
        with suppress(UrlError):
            name = canonical_host(name)
    return name if _NAME.fullmatch(name) else ""


def _mark(host: str) -> int:
    return int.from_bytes(blake2b(host.encode(), digest_size=8).digest())


def _signature(path: Path) -> _Signature:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino

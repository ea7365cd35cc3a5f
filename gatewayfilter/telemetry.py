"""Logging and counters of a process. No query strings, no client names at INFO."""

import errno
import json
import logging
import os
import sys
import tempfile
import time
import unicodedata
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

METRICS: Mapping[str, str] = {
    "requests": "requests decided by a proxy worker",
    "blocked": "requests answered by the filter instead of the origin",
    "unknown": "requests for URLs that no list knows",
    "origin_errors": "allowed requests whose origin could not be reached, proved no identity or did not speak HTTP",
    "internal_refused": "connections refused because their target is an internal address",
    "hook_errors": "proxy hooks that failed and were answered by proxy.on_error",
    "connections": "connections that clients made",
    "connections_refused": "connections closed at once because there were too many",
    "spliced": "connections passed through unread",
    "spliced_bytes": "bytes that passed through them, both ways",
    "denied": "connections to blocked hosts refused before their first request",
    "tls_failed": "TLS handshakes that a client broke off",
    "pinned_apps_learned": "apps found that accept no certificate of the filter's",
    "pinned_apps_refused": "names that do not pass through because their device has too many already",
    "bad_requests": "requests that were no HTTP, answered with 400 or 431",
    "logins_throttled": "log-ins answered with 429, as too many of the same client were waiting to be looked at",
    "not_http": "connections that were refused because they spoke neither HTTP nor TLS",
    "header_timeouts": "connections closed because a request's head or a ClientHello took too long",
    "logins_refused": "requests with a wrong user name or password for the proxy",
    "requests_changed": "allowed requests that an Adblock modifier rewrote, redirected or took headers from",
    "responses_changed": "responses that an Adblock modifier changed",
    "edits_skipped": "bodies left as they are: too long, or in an encoding that cannot be taken off",
    "edits_failed": "bodies that broke while they were being changed, and were cut off",
    "inspected": "pages looked at before they were delivered",
    "inspect_failed": "pages that could not be looked at in time and were treated as proxy.on_error says",
    "captures_queued": "pages handed to the learner as they passed",
    "captures_dropped": "pages that found the way to the learner full",
    "unblock_requests": "requests of users to unblock a page",
    "crawl_requests_dropped": "unknown URLs that found the queue to the frontier full",
    "log_dropped": "decisions that found the queue to the log full",
    "log_written": "decisions written to the log",
    "crawl_requests_written": "unknown URLs written to the frontier",
    "store_errors": "batches that the database refused",
    "overlay_changes": "list changes taken into the overlay",
    "snapshot_swaps": "snapshots taken into use while serving",
    "snapshot_refused": "damaged or unreadable snapshots passed over",
    "pages_fetched": "pages fetched by the crawler",
    "pages_rendered": "pages rendered in a browser",
    "render_failures": "pages that could not be rendered",
    "pages_refused": "URLs that the crawler's safety policy, robots.txt or the address guard refused",
    "pages_failed": "fetches that failed",
    "pages_retried": "pages that are tried again later because their site could not be reached",
    "dead_letters": "URLs that went to the dead letters",
    "pages_unchanged": "pages that their site said were as before: the verdict before counts anew",
    "links_followed": "links that the crawler queued by itself",
    "links_over_budget": "links that were not queued because their site had its share for the day",
    "hosts_throttled": "times that a host began to be asked less often because it failed or was asked too much",
    "leases_returned": "pages in work with a crawler that is gone, handed out again",
    "captures_classified": "pages judged as they passed the proxy, without a fetch",
    "pages_harmful": "pages classified as harmful",
    "pages_harmless": "pages classified as harmless",
    "pages_archived": "pages written to the archive",
    "archive_failures": "pages or notes of evidence that could not be written to the archive",
    "pages_buffered": "pages that wait on the disk to be judged",
    "pages_lost": "pages removed from the archive before they were judged",
    "proxies_failed": "requests that an outbound proxy of the crawler did not get through",
    "dns_hits": "host names whose addresses the crawler knew",
    "dns_misses": "host names that the crawler had to look up",
    "near_duplicates": "harmless pages that are nearly the same as a harmful one",
    "fingerprint_hits": "pages whose content was judged before",
    "images_known_bad": "images on a list of known bad ones",
    "hosts_harmful": "hosts listed whole, because most of their pages are harmful",
    "reviews_opened": "tasks opened for a person",
    "reviews_dropped": "tasks not opened, because too many wait",
    "pages_skipped": "pages of a kind that is not classified",
    "pages_reflected": "pages not learned, because they are harmful only by what was said in asking for them",
    "publishes": "snapshots published by the learner",
}
"""Every counter, with its meaning; docs/metrics.md is checked against it."""


class Counters:
    """The counters of one process. Only names of `METRICS` exist."""

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: Counter[str] = Counter()

    def add(self, name: str, amount: int = 1) -> None:
        """Counts. Raises KeyError for a name that METRICS does not know."""
        if name not in METRICS:
            raise KeyError(name)
        self._values[name] += amount

    def __getitem__(self, name: str) -> int:
        return self._values[name]

    def as_dict(self) -> dict[str, int]:
        """Returns all that counted, by name."""
        return dict(sorted(self._values.items()))


class StatusFile:
    """`run/<name>.json` in the state folder: a process's report on itself, for the supervisor, `doctor` and people.

    Written whole and renamed, so that a reader never sees half of it. On a full disk it is overwritten where it stands, which
    takes no room; a reader then may see half of it.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._path = folder / f"{name}.json"
        self._failure = ""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def write(self, **facts: object) -> None:
        """Writes the facts, with process id and time. A full disk is not an error here; a failure is logged when it begins."""
        document = json.dumps({"pid": os.getpid(), "at": round(time.time(), 3), **facts}).encode()
        try:
            try:
                self._replace(document)
            except OSError as error:
                if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
                    raise
                self._overwrite(document)
            self._failure = ""
        except OSError as error:
            if self._failure != (failure := str(error.strerror)):
                logging.getLogger(__name__).warning("cannot write %s: %s", self._path.name, failure)
            self._failure = failure

    def _replace(self, document: bytes) -> None:
        descriptor, name = tempfile.mkstemp(dir=self._path.parent, prefix=".")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(document)
            Path(name).replace(self._path)
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise

    def _overwrite(self, document: bytes) -> None:
        """Writes into the blocks that the file has; blanks after JSON are JSON."""
        with self._path.open("r+b", buffering=0) as file:
            padded = document.ljust(os.fstat(file.fileno()).st_size)
            if file.write(padded) < len(document):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def remove(self) -> None:
        """Removes the file."""
        self._path.unlink(missing_ok=True)


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "at": round(record.created, 3),
            "level": record.levelname.lower(),
            "logger": record.name,
            "pid": record.process,
            "message": record.getMessage(),
        }
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = self.formatException(record.exc_info)
        return _escaped(json.dumps(line, ensure_ascii=False))


def _escaped(line: str) -> str:
    """Returns JSON with escapes for what steers a terminal or reorders a line, which JSON leaves as it is beyond ASCII."""
    if line.isascii() and line.isprintable():
        return line
    return "".join(mark if unicodedata.category(mark) not in _STEERING else json.dumps(mark)[1:-1] for mark in line).replace(
        "\x7f", "\\u007f"
    )


_STEERING = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Categories of characters: controls, bidirectional and other format marks, lone surrogates, separators of lines."""


class _PlainLines(logging.Formatter):
    """Plain text for a terminal, without what steers it; lines and tabs of tracebacks stay."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        if text.isascii() and text.isprintable():
            return text
        return "".join(
            mark if mark in "\n\t" or unicodedata.category(mark) not in _STEERING else ascii(mark)[1:-1] for mark in text
        )


def set_up_logging(level: str, *, json_lines: bool | None = None) -> None:
    """Sends the root logger to standard error.

    Args:
        level: `debug`, `info`, `warning` or `error`.
        json_lines: JSON lines or plain text; by default plain on a terminal.
    """
    handler = logging.StreamHandler(sys.stderr)
    plain = sys.stderr.isatty() if json_lines is None else not json_lines
    handler.setFormatter(_PlainLines("%(asctime)s %(levelname)s %(name)s: %(message)s") if plain else _JsonLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.getLogger("alembic").setLevel(logging.WARNING)  # it logs each of its plugins at INFO

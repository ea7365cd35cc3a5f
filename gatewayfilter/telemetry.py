"""Logging, counters and the status file of a process. No query strings, no client names at INFO."""

import errno
import json
import logging
import os
import sys
import tempfile
import time
import unicodedata
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

METRICS: Mapping[str, str] = {
    "requests": "requests decided by a proxy worker",
    "blocked": "requests answered by the filter instead of the origin",
    "unknown": "requests for URLs on no list",
    "origin_errors": "allowed requests that failed at the origin: unreachable, invalid certificate, or no HTTP",
    "origin_connections_shared": "connections to origins that another client connection had before",
    "internal_refused": "connections refused because their target is an internal address",
    "hook_errors": "proxy hooks that failed; the request was handled by proxy.on_error",
    "connections": "connections from clients",
    "connections_refused": "connections closed at once because there were too many",
    "overload_refused": "new connections answered with 503 because the worker was behind",
    "spliced": "connections passed through unread",
    "spliced_bytes": "bytes that passed through them, both ways",
    "ended_by_policy": "open requests and tunnels ended because a policy blocks them from now on",
    "quota_uses_dropped": "minutes of quotas that were lost because a queue was full or the database refused them",
    "denied": "connections to blocked hosts refused before their first request",
    "tls_failed": "TLS handshakes that a client aborted",
    "pinned_apps_learned": "apps found to accept no certificate of the filter",
    "pinned_apps_refused": "names not passed through because their device has too many already",
    "bad_requests": "malformed requests, answered with 400 or 431",
    "logins_throttled": "log-ins answered with 429: too many password checks of the client were waiting",
    "not_http": "connections refused because they were neither HTTP nor TLS",
    "header_timeouts": "connections closed because a request's head or a ClientHello took too long",
    "logins_refused": "requests with a wrong user name or password for the proxy",
    "searches_enforced": "requests to search engines and video sites that a policy changed: SafeSearch, Restricted Mode",
    "requests_changed": "allowed requests that an Adblock modifier rewrote, redirected or took headers from",
    "responses_changed": "responses that an Adblock modifier changed",
    "edits_skipped": "bodies passed unchanged: too long, or in an encoding that cannot be decoded",
    "edits_failed": "bodies truncated because they failed to decode during a change",
    "inspected": "pages inspected before delivery",
    "inspect_failed": "pages not inspected in time; handled by proxy.on_error",
    "captures_queued": "passing pages copied to the learner",
    "captures_dropped": "passing pages dropped because the learner's buffer was full",
    "unblock_requests": "requests of users to unblock a page",
    "unblock_refused": "requests to unblock a page beyond the limits of a client, or where its policy takes none",
    "links_opened": "bypass links opened",
    "links_refused": "bypass links that were forged, expired, revoked, used or another client's",
    "notifications_sent": "messages sent to the operator",
    "notifications_failed": "tries to send a message that failed",
    "notifications_dropped": "events that no message was sent of: too old, or too many",
    "crawl_requests_dropped": "unknown URLs dropped because the write queue to the frontier was full",
    "log_dropped": "decisions dropped because the write queue to the log was full",
    "log_written": "decisions written to the log",
    "traces_sent": "decisions that were sent to metrics.otlp as traces",
    "traces_dropped": "drawn decisions that metrics.otlp did not get: it was away, or too slow",
    "crawl_requests_written": "unknown URLs written to the frontier",
    "store_errors": "batches that the database refused",
    "overlay_changes": "list changes applied to the overlay",
    "snapshot_swaps": "snapshots taken into use while serving",
    "snapshot_refused": "damaged or unreadable snapshots skipped",
    "queue_away": "unknown URLs and links kept in the machine's own queue, because Redis was away",
    "pages_fetched": "pages fetched by the crawler",
    "pages_rendered": "pages rendered in a browser",
    "render_failures": "pages that could not be rendered",
    "pages_refused": "URLs that the crawler's safety policy, robots.txt or the address guard refused",
    "pages_failed": "fetches that failed",
    "pages_retried": "pages retried later because their site could not be reached",
    "dead_letters": "URLs moved to the dead letters",
    "pages_unchanged": "pages not modified since the last fetch (304): the earlier verdict is renewed",
    "links_followed": "links queued by the crawler itself",
    "links_over_budget": "links not queued because their site's daily budget was used up",
    "jobs_sent": "URLs that the scheduler sent to fetchers over Kafka",
    "pages_parsed": "pages that a parser judged ahead of the storage",
    "results_stale": "results of fetchers and parsers that came twice, or after their lease; they were dropped",
    "crawl_messages": "messages that a module of the crawler was done with",
    "crawl_dead_letters": "messages that a module of the crawler gave up: they are in the topic of dead letters, with the reason",
    "crawl_kafka_away": "outages of Kafka that a module of the crawler saw",
    "hosts_throttled": "times that the request rate to a host was reduced after failures or 429 and 503",
    "leases_returned": "leases of ended crawlers, leased again",
    "captures_classified": "pages classified as they passed the proxy, without a fetch",
    "pages_harmful": "pages classified as harmful",
    "pages_harmless": "pages classified as harmless",
    "pages_archived": "pages written to the archive",
    "archive_failures": "pages or evidence entries that could not be written to the archive",
    "pages_buffered": "pages buffered on disk for classification",
    "pages_lost": "pages removed from the archive before their classification",
    "proxies_failed": "crawler requests that failed at an outbound proxy",
    "dns_hits": "host names resolved from the crawler's DNS cache",
    "dns_misses": "host names resolved by a DNS query",
    "pages_doubtful": "harmless pages in doubt, for review",
    "near_duplicates": "harmless pages that are near duplicates of a harmful one",
    "fingerprint_hits": "pages with content that was judged before",
    "cache_hits": "look-ups that the shared cache answered",
    "cache_misses": "look-ups of content that the shared cache does not have",
    "cache_refused": "values of the shared cache that are broken or forged; each is a miss",
    "cache_away": "look-ups without the shared cache, because Redis was away",
    "images_known_bad": "images on a list of known bad ones",
    "hosts_harmful": "hosts listed as a whole because most of their pages are harmful",
    "reviews_opened": "review tasks opened",
    "reviews_dropped": "review tasks not opened because too many are open",
    "pages_skipped": "pages of a type that is not classified",
    "pages_reflected": "pages not learned because they are harmful only by words of the request",
    "second_looks": "verdicts changed by facts about the host or by rejected reviews",
    "publishes": "snapshots published by the learner",
    "decisions_sent": "decisions that Kafka acknowledged",
    "decisions_away": "tries to send decisions to Kafka that failed; they wait in the log",
    "decisions_expired": "decisions that were removed from the log before Kafka was there for them, at most",
    "helper_requests": "requests that helpers of squid passed on to be decided",
    "helper_malformed": "lines of helpers that held no request; refused",
    "sync_sent": "rules, policies and sources that this gateway shared with the others",
    "sync_applied": "rules, policies and sources of other gateways that were taken over",
    "sync_refused": "changes of other gateways that were refused: another key, or contradicting what is here",
    "sync_resyncs": "comparisons of all that gateways share: at each start, every five minutes, after a long outage",
    "sync_replayed": "older values of gateways that were written back to the shared state, and refused",
    "sync_away": "tries to keep in step with other gateways that failed",
    "icap_requests": "requests that ICAP clients had decided (reqmod)",
    "icap_responses": "responses that ICAP clients had decided and judged (respmod)",
    "icap_repeated": "pages of ICAP clients that were judged within the last minute, byte for byte",
    "icap_malformed": "ICAP requests that were malformed or for no service; refused",
    "icap_refused": "ICAP connections that were refused: too many, or from another network",
    "rpz_changes": "versions of the response policy zone",
    "rpz_transfers": "transfers of the whole zone (AXFR)",
    "rpz_increments": "transfers of what changed in the zone (IXFR)",
    "rpz_refused": "queries and connections for the zone that were refused: address, key, another zone, too many",
    "rpz_notified": "NOTIFY messages that a resolver answered",
    "rpz_notify_failed": "NOTIFY messages that no resolver answered; it asks again by itself after a minute",
    "rpz_files": "zone files written",
    "rpz_file_failures": "zone files that could not be written, or whose rpz.reload failed; tried again",
    "decide_requests": "requests that were decided over HTTP",
    "decide_refused": "HTTP questions that were refused: token, form, length",
    "fleet_requests": "requests of followers to the fleet's publisher",
    "fleet_refused": "requests of followers that were refused: token, path, rate",
    "fleet_bytes": "bytes of manifests and snapshots that a publisher sent, or a follower fetched",
    "fleet_reports": "health reports of followers",
    "fleet_exports": "manifests that the publisher has signed",
    "fleet_export_failures": "exports of the publisher that failed; the earlier one stays",
    "fleet_polls": "polls of the fleet's publisher by this follower",
    "fleet_failures": "polls that failed: publisher away, disk full",
    "fleet_rejected": "manifests, snapshots and rules of the publisher that were refused: signature, rollback, content",
    "fleet_swaps": "snapshots published with lists of the fleet's publisher",
}
"""Every counter, with its meaning; docs/metrics.md is checked against it."""


DECISION_BOUNDS_US: Final = (5, 10, 15, 20, 30, 50, 75, 100, 150, 250, 500, 1_000, 2_500, 10_000, 100_000)
"""Upper bounds of the buckets of `DecisionTimes`, inclusive; the last bucket has none."""
_BUCKETS: Final = (*map(str, DECISION_BOUNDS_US), "inf")
_MOST_WAITING: Final = 65_536


class DecisionTimes:
    """A histogram of the times that decisions took.

    A request appends to a queue, 0.04 µs; `collect` distributes what waits, in the thread that writes the status.
    """

    __slots__ = ("_counts", "_sum_us", "_waiting", "take")

    def __init__(self) -> None:
        self._waiting: deque[int] = deque(maxlen=_MOST_WAITING)  # beyond it the oldest are lost
        self._counts = dict.fromkeys(_BUCKETS, 0)
        self._sum_us = 0
        self.take: Final = self._waiting.append
        """Takes the time of a decision, in whole microseconds."""

    def collect(self) -> dict[str, int]:
        """Returns the number of decisions by the upper bound of their bucket, `inf` for the last, and `sum` in microseconds."""
        waiting = self._waiting
        for elapsed_us, number in Counter(waiting.popleft() for _ in range(len(waiting))).items():
            self._counts[_BUCKETS[bisect_left(DECISION_BOUNDS_US, elapsed_us)]] += number
            self._sum_us += max(elapsed_us, 0) * number
        return {**self._counts, "sum": self._sum_us}


class Counters:
    """The counters of one process. Only names of `METRICS` exist.

    Attributes:
        decision_times: of the requests that a worker decided.
    """

    __slots__ = ("_values", "decision_times")

    def __init__(self) -> None:
        self._values: Counter[str] = Counter()
        self.decision_times: Final = DecisionTimes()

    def add(self, name: str, amount: int = 1) -> None:
        """Counts. Raises KeyError for a name that is not in METRICS."""
        if name not in METRICS:
            raise KeyError(name)
        self._values[name] += amount

    def __getitem__(self, name: str) -> int:
        return self._values[name]

    def as_dict(self) -> dict[str, int]:
        """Returns the counters that are not zero, by name."""
        return dict(sorted(self._values.items()))


class StatusFile:
    """`run/<name>.json` in the state folder: a process's report on itself, for the supervisor, `doctor` and the operator.

    Written whole and renamed, so that a reader never sees half of it. On a full disk it is overwritten where it stands, which
    takes no room; a reader then may see half of it.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._path = folder / f"{name}.json"
        self._failure = ""
        with suppress(OSError):  # it is there, or the first write reports it
            folder.mkdir(mode=0o700, parents=True)

    @property
    def failed(self) -> bool:
        """Whether the last write failed, so that the file is not up to date."""
        return bool(self._failure)

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
        """Removes the file, if the folder can be written."""
        with suppress(OSError):
            self._path.unlink()


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "at": round(record.created, 3),
            "level": record.levelname.lower(),
            "logger": record.name,
            "pid": record.process,
            "message": record.getMessage(),
        }
        if record.exc_info and any(record.exc_info):
            line["error"] = self.formatException(record.exc_info)
        return _escaped(json.dumps(line, ensure_ascii=False))


def _escaped(line: str) -> str:
    """Returns JSON with escapes for non-ASCII characters that control a terminal or reorder a line, which JSON leaves."""
    if line.isascii() and line.isprintable():
        return line
    return "".join(mark if unicodedata.category(mark) not in _STEERING else json.dumps(mark)[1:-1] for mark in line).replace(
        "\x7f", "\\u007f"
    )


_STEERING = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Categories of characters: controls, bidirectional and other format characters, lone surrogates, separators of lines."""


class _PlainLines(logging.Formatter):
    """Plain text for a terminal, without control characters; lines and tabs of tracebacks stay."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        if text.isascii() and text.isprintable():
            return text
        return "".join(
            mark if mark in "\n\t" or unicodedata.category(mark) not in _STEERING else ascii(mark)[1:-1] for mark in text
        )


def set_up_logging(level: str, form: str = "auto") -> None:
    """Sends the root logger to standard error.

    Args:
        level: `debug`, `info`, `warning` or `error`.
        form: `text`, `json` (JSON lines), or `auto`: text on a terminal, JSON elsewhere.
    """
    handler = logging.StreamHandler(sys.stderr)
    plain = sys.stderr.isatty() if form == "auto" else form == "text"
    handler.setFormatter(_PlainLines("%(asctime)s %(levelname)s %(name)s: %(message)s") if plain else _JsonLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.getLogger("alembic").setLevel(logging.WARNING)  # it logs each of its plugins at INFO

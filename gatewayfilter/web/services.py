"""What all requests of the dashboard share: settings, database, child processes, catalogues."""

from __future__ import annotations

import hashlib
import pickle
import threading
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from datetime import tzinfo
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import fastapi
import pydantic

import gatewayfilter
from gatewayfilter import __version__, wiring
from gatewayfilter.config import Loaded, Settings, load
from gatewayfilter.engine.policies.service_index import ServiceIndex
from gatewayfilter.model import Service
from gatewayfilter.private_files import replace_file
from gatewayfilter.store import Store
from gatewayfilter.store.secret_key import load_key
from gatewayfilter.use_cases.access.dashboard_access import WEB_KEY, DashboardAccess
from gatewayfilter.use_cases.learning.extraction_work import ExtractionWork
from gatewayfilter.use_cases.people.client_list import Makers
from gatewayfilter.use_cases.traffic.live_log import LiveLog
from gatewayfilter.use_cases.traffic.shared_batches import SharedBatches
from gatewayfilter.web.child_process import ChildProcess
from gatewayfilter.web.page_shelf import PageShelf
from gatewayfilter.web.source_worker import SourceWorker

if TYPE_CHECKING:  # 16 MB that are imported when they are needed
    from gatewayfilter.sources import Categories, Subscriptions
    from gatewayfilter.use_cases.filter_status import FilterStatus
    from gatewayfilter.use_cases.https import Authorities
    from gatewayfilter.use_cases.metrics.exposition import StatusCollector
    from gatewayfilter.use_cases.operation.examinations import Examinations
    from gatewayfilter.use_cases.sign_on.single_sign_on import SingleSignOn
    from gatewayfilter.use_cases.sign_on.token_facts import CheckedToken, ExpectedToken
    from gatewayfilter.use_cases.traffic.health_facts import HealthFacts
    from gatewayfilter.use_cases.traffic.log_clients import LogClients

_SIGN_ON: Final = "gatewayfilter.use_cases.sign_on"
_STATUS_S: Final = 5.0
"""How long the state of the filter is used before it is read again."""
FETCH_TIMEOUT_S: Final = 40.0
FETCH_IDLE_S: Final = 60.0
EDIT_TIMEOUT_S: Final = 4.0
CHECK_TIMEOUT_S: Final = 600.0
"""One check reads the whole database: 40 s for 3 GB on a disk that has nothing in memory."""
_DOCUMENT_TIMEOUT_S: Final = 60.0
"""3 s of CPU at a low priority, for which a person waits on no page but the reference of the API."""
_NAMES_S: Final = 2.0
"""How long the names of clients are used before they are read again."""


class WebServices:
    """The parts of the filter that handlers use. Thread-safe.

    Args:
        loaded: the settings with their origins.
        store: the database; the caller closes it.
        clock: Unix seconds.

    Attributes:
        child: does what loads the classifier, or cryptography.
        checker: keeps the engine over the newest lists, for checks of URLs.
        fetching: fetches pages by the crawler, and searches large lists; apart: a slow site or disk holds up nothing else.
        editing: reads pages by extraction rules, no longer than a rule may take.
        shelf: the pages that extraction rules are edited with.
        verifying: checks ID tokens; apart from what reads hostile pages, which could not be trusted with that.
    """

    def __init__(self, loaded: Loaded, store: Store, clock: Callable[[], float] = time.time) -> None:
        self.loaded = loaded
        self.store = store
        self.clock = clock
        self.child = ChildProcess()
        self.checker = ChildProcess()
        self.fetching = ChildProcess(FETCH_TIMEOUT_S, idle_s=FETCH_IDLE_S)
        self.editing = ChildProcess(EDIT_TIMEOUT_S)
        self.shelf = PageShelf(clock)
        self.verifying = ChildProcess(idle_s=FETCH_IDLE_S)
        self._lock = threading.Lock()
        self._collector: StatusCollector | None = None
        self._names: LogClients | None = None
        self._names_until = 0.0
        self._status: FilterStatus | None = None
        self._status_until = 0.0
        self._health: HealthFacts | None = None
        self._health_until = 0.0
        self._service_index: ServiceIndex | None = None
        self._services_stamp: tuple[int, int] | None = None
        self._authorities: Authorities | None = None
        self._authorities_stamp: tuple[object, ...] = ()
        self._document = b""
        self._documenting = threading.Lock()

    @property
    def settings(self) -> Settings:
        """All settings."""
        return self.loaded.settings

    @property
    def settings_file(self) -> Path:
        """The settings file in use; where there is none, the one in the state folder."""
        return self.loaded.file or self.settings.data_dir / "config.toml"

    def reloaded(self) -> Loaded:
        """Returns the settings as they would be after a restart: the file may have been changed.

        Raises:
            ConfigError: the file is not valid.
        """
        return load(
            file=self.settings_file if self.settings_file.is_file() else None, options={"data_dir": self.settings.data_dir}
        )

    @cached_property
    def access(self) -> DashboardAccess:
        """Accounts, sessions, tokens, the audit log and undo."""
        take_back = partial(self.editing.run, "gatewayfilter.use_cases.learning.extraction_jobs:take_back", self.settings)
        return DashboardAccess(self.settings, self.store, take_back, self.clock, _SourceUndo(self))

    @property
    def extraction(self) -> ExtractionWork:
        """Extraction rules."""
        return ExtractionWork(self.editing, self.fetching, self.settings, self.store, self.clock)

    @cached_property
    def sign_on(self) -> SingleSignOn | None:
        """Single sign-on, `None` where it is off."""
        oidc = self.settings.web.oidc
        if not oidc.is_on:
            return None
        from gatewayfilter.use_cases.sign_on.single_sign_on import SingleSignOn  # noqa: PLC0415  with its HTTP client

        key = load_key(self.settings.data_dir, WEB_KEY)
        return SingleSignOn(oidc, key, self.store, self.access, self._checked_token, self.clock)

    def _checked_token(self, token: str, keys: str, expected: ExpectedToken) -> CheckedToken:
        checked: CheckedToken = self.verifying.run(f"{_SIGN_ON}.id_token:checked_token", token, keys, expected)
        return checked

    @cached_property
    def categories(self) -> Categories:
        """The registry of categories."""
        return wiring.categories()

    @property
    def subscriptions(self) -> Subscriptions:
        """The subscriptions, as their files are now."""
        return wiring.subscriptions(self.settings)

    @property
    def services(self) -> Mapping[str, Service]:
        """The catalogue of services by id."""
        return self.service_index.services

    @property
    def service_index(self) -> ServiceIndex:
        """The catalogue of services, as its files are now."""
        stamp = _stamp(wiring.own_services(self.settings))
        with self._lock:
            if self._service_index is None or stamp != self._services_stamp:
                self._service_index = ServiceIndex(wiring.usable_services(self.settings))
                self._services_stamp = stamp
            return self._service_index

    @cached_property
    def source_worker(self) -> SourceWorker:
        """Downloads and publishes lists."""
        return SourceWorker(self.settings, self.clock)

    def authorities(self) -> Authorities:
        """Returns the certificate authorities as they are now. The child process reads them: cryptography takes 12 MB.

        Raises:
            StartupError: one cannot be read.
        """
        folder = self.settings.data_dir / "ca"
        stamp = tuple((path.name, _stamp(path)) for path in sorted(folder.glob("*")))
        if self._authorities is None or stamp != self._authorities_stamp:
            self._authorities = self.child.run("gatewayfilter.use_cases.https:authorities", self.settings)
            self._authorities_stamp = stamp
        return self._authorities

    @cached_property
    def examinations(self) -> Examinations:
        """The check of the installation."""
        from gatewayfilter.use_cases.operation.examinations import ChildChecks, Examinations  # noqa: PLC0415  when it is asked for

        child = ChildProcess(CHECK_TIMEOUT_S, idle_s=FETCH_IDLE_S)
        return Examinations(ChildChecks(child.run, self.settings, self.loaded.file), self.clock)

    @cached_property
    def makers(self) -> Makers:
        """Makers of network interfaces."""
        return Makers()

    @cached_property
    def zone_name(self) -> str:
        """The IANA name of `zone`."""
        from gatewayfilter.use_cases.network_facts import zone_name  # noqa: PLC0415  with the policies, when they are needed

        return zone_name(self.settings)

    @cached_property
    def zone(self) -> tzinfo:
        """The time zone of days: that of the settings, else this machine's."""
        from gatewayfilter.use_cases.network_facts import filter_zone  # noqa: PLC0415  with the policies, when they are needed

        return filter_zone(self.settings)

    @cached_property
    def live_batches(self) -> SharedBatches:
        """The newest decisions, read and written once for all streams."""
        return SharedBatches(LiveLog(self.store.log))

    def openapi_document(self) -> bytes:
        """Returns the OpenAPI document as JSON, compressed by zlib. A child process of its own makes it once for a release.

        Raises:
            ClassifyError: the child could not.
        """
        with self._documenting:
            if not self._document:
                self._document = self._kept_document()
        return self._document

    def _kept_document(self) -> bytes:
        path = self.settings.data_dir / "cache" / f"openapi-{_program_digest()}.z"
        with suppress(OSError, zlib.error):
            kept = path.read_bytes()
            zlib.decompress(kept)  # a damaged one is made again
            return kept
        with closing(ChildProcess(_DOCUMENT_TIMEOUT_S)) as child:
            made: bytes = child.run("gatewayfilter.web.app:compressed_document")
        with suppress(OSError):  # on a full or read-only disk it is made again after the next start
            path.parent.mkdir(mode=0o700, exist_ok=True)
            replace_file(path, made)
        for older in set(path.parent.glob("openapi-*.z")) - {path}:
            with suppress(OSError):
                older.unlink()
        return made

    def exposition(self) -> bytes:
        """Returns the counters of all processes in the exposition format of Prometheus; totals outlive their restarts."""
        from gatewayfilter.use_cases.metrics.exposition import StatusCollector, exposition  # noqa: PLC0415  when it is asked for

        with self._lock:
            if self._collector is None:
                self._collector = StatusCollector(self.settings.data_dir / "run")
            return exposition(self._collector)

    def status(self) -> FilterStatus:
        """Returns the state of the filter, some seconds old at most.

        Raises:
            StoreError: the database refuses.
        """
        from gatewayfilter.use_cases.filter_status import filter_status  # noqa: PLC0415

        with self._lock:
            if self._status is None or time.monotonic() >= self._status_until:
                self._status, self._status_until = (
                    filter_status(self.settings, self.store, self.clock()),
                    time.monotonic() + _STATUS_S,
                )
            return self._status

    def health(self) -> HealthFacts:
        """Returns certificate, ways past a gateway and the crawler's queue, some seconds old at most.

        Raises:
            StoreError: the database refuses.
        """
        from gatewayfilter.use_cases.traffic.health_facts import health_facts  # noqa: PLC0415

        found = self._health
        if found is None or time.monotonic() >= self._health_until:  # not locked: the engine is
            found = health_facts(self.settings, self.store, self._resolvers, self.clock())
            self._health, self._health_until = found, time.monotonic() + _STATUS_S
        return found

    def _resolvers(self) -> tuple[int, int]:
        job = "gatewayfilter.web.access.check_job:resolvers"
        found: tuple[int, int] = self.checker.run(job, pickle.dumps(self.settings), self.clock())
        return found

    def waiting(self) -> dict[str, int]:
        """Returns what waits for a person, by the key of its entry in the navigation. A fifth of a millisecond.

        Raises:
            StoreError: the database refuses.
        """
        return {"requests": self.store.unblock.open_count(), "review": self.store.reviews.open_count()}

    def clients(self) -> LogClients:
        """Returns the names of clients in the log, some seconds old at most.

        Raises:
            StoreError: the database refuses.
        """
        from gatewayfilter.use_cases.traffic.log_clients import LogClients  # noqa: PLC0415

        with self._lock:
            if self._names is None or time.monotonic() >= self._names_until:
                if self._names is None or not self._names.is_current:
                    self._names = LogClients(self.store, self.settings)
                self._names_until = time.monotonic() + _NAMES_S
            return self._names


class _SourceUndo:
    """Takes changes of subscriptions back in the background."""

    def __init__(self, services: WebServices) -> None:
        self._services = services

    def take_back(self, pairs: Sequence[Sequence[Mapping[str, Any] | None]]) -> dict[str, Any]:
        from gatewayfilter.use_cases.lists.source_undo import SourceUndo  # noqa: PLC0415  when it is wanted

        worker = self._services.source_worker
        return SourceUndo(self._services.settings, lambda found: worker.start("put_back", "", found)).take_back(pairs)


def _program_digest() -> str:
    """Returns a digest that changes with the versions that make the document, and with the program's files, in a checkout.

    All of them: models of the API have types from most rooms. 25 ms.
    """
    found = hashlib.sha256(f"{__version__} {fastapi.__version__} {pydantic.VERSION}".encode())
    folder = Path(gatewayfilter.__file__).parent
    for path in sorted(folder.rglob("*.py")):
        found.update(f"{path.relative_to(folder)} {_stamp(path)}".encode())
    return found.hexdigest()[:16]


def _stamp(path: Path) -> tuple[int, int] | None:
    """Returns what changes when a file does, `None` when it is missing."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size

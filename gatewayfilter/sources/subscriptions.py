"""The subscriptions of a state folder: one folder each, changed under a lock, the last good copy kept whatever happens."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

from gatewayfilter.config import SourceSettings
from gatewayfilter.errors import ListError, MissingSourceError, SourceError
from gatewayfilter.model import ListAction, Source
from gatewayfilter.sources.bundled import PREFIX, starter_lists
from gatewayfilter.sources.catalog import Bundle, CatalogEntry, choose_lists, load_bundles, load_catalog
from gatewayfilter.sources.categories import Categories
from gatewayfilter.sources.download.http_download import TemporaryError, Validators
from gatewayfilter.sources.formats.list_format import ListFormat, ParseReport
from gatewayfilter.sources.new_source import NewSource
from gatewayfilter.sources.parallel import in_parallel
from gatewayfilter.sources.source_lock import empty, locked_source, sweep, sync_folder
from gatewayfilter.sources.source_naming import NAME, suggestion
from gatewayfilter.sources.subscription import (
    Definition,
    SourceFile,
    SourceState,
    Subscription,
    UpdateResult,
    UpdateStatus,
    read_definition,
    read_report,
    read_state,
    write_json,
)

if TYPE_CHECKING:  # imports the Adblock engine
    from gatewayfilter.sources.download.acquire import Acquired

_log = logging.getLogger(__name__)

type Progress = Callable[[str, int, int], None]

_FIRST_RETRY_S = 300.0
_JITTER = 0.1
"""Share of the interval by which updates are spread, so that they are not all due at once."""

_LEAST_SHARE = 0.1
"""A list that shrinks below this share of its last entries is taken for an accident of its publisher."""


class Subscriptions:
    """The subscriptions, bundled starter lists included. Any number of processes may use the folder at once.

    Args:
        folder: `sources/` of the state folder; made when something is added.
        settings: limits, and whether the starter lists are active.
        bundled: the folder with `starter/`, `catalog.toml` and `categories.toml`.
        clock: Unix seconds.
        sleep: waits between two tries of a download.
    """

    def __init__(
        self,
        folder: Path,
        settings: SourceSettings,
        bundled: Path,
        *,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._folder = folder
        self._settings = settings
        self._bundled = bundled
        self._clock = clock
        self._sleep = sleep

    @cached_property
    def categories(self) -> Categories:
        """The registry of categories."""
        return Categories.load(self._bundled / "categories.toml")

    @cached_property
    def catalog(self) -> dict[str, CatalogEntry]:
        """The lists that `add` takes by name."""
        return load_catalog(self._bundled / "catalog.toml")

    @cached_property
    def bundles(self) -> dict[str, Bundle]:
        """The lists of the catalogue that fit a purpose."""
        return load_bundles(self._bundled / "catalog.toml")

    @cached_property
    def _starters(self) -> dict[str, Subscription]:
        return starter_lists(self._bundled / "starter", self.categories) if self._settings.bundled else {}

    def names(self) -> list[str]:
        """Returns the names of all sources: the starter lists, then the others in alphabetical order."""
        own = (path.parent.name for path in self._folder.glob("*/source.json"))
        return [*self._starters, *sorted(name for name in own if NAME.fullmatch(name) and not name.startswith(PREFIX))]

    def all(self) -> list[Subscription]:
        """Returns all sources, in the order of `names`; one with a damaged definition is logged and left out."""
        found: list[Subscription] = []
        for name in self.names():
            try:
                found.append(self.get(name))
            except SourceError as error:
                _log.warning("%s", error)
        return found

    def get(self, name: str) -> Subscription:
        """Returns a source.

        Raises:
            SourceError: there is none of this name, or its definition is damaged.
        """
        home = self._folder / name
        saved = home / "source.json"
        if starter := self._starters.get(name):
            if saved.exists():
                starter = replace(starter, definition=replace(starter.definition, enabled=read_definition(saved).enabled))
            return starter
        if not NAME.fullmatch(name) or name.startswith(PREFIX) or not saved.exists():
            raise MissingSourceError(f"there is no source {name!r}{suggestion(name, self.names())}")
        definition, state = read_definition(saved), read_state(home / "state.json")
        report = read_report(home / "report.json")
        return Subscription(definition, home / "list", state, report, self._next_due_at(definition, state))

    def _next_due_at(self, definition: Definition, state: SourceState) -> float:
        if not state.checked_at:
            return 0.0
        interval_s = (definition.interval_h or self._settings.interval_h) * 3600
        if state.failures:
            interval_s = max(state.retry_after_s, min(interval_s, _FIRST_RETRY_S * 2.0 ** min(state.failures - 1, 20)))
        return state.checked_at + interval_s * (1 + _JITTER * crc32(definition.name.encode()) / 2**32)

    def due(self, now: float) -> list[str]:
        """Returns the enabled sources with an update due."""
        return [
            subscription.definition.name
            for subscription in self.all()
            if subscription.definition.enabled and not subscription.definition.bundled and subscription.next_due_at <= now
        ]

    def missing(self, purpose: str | None = None, *, defaults: bool = False) -> tuple[str, ...]:
        """Returns the lists of a bundle, and of the usual ones, that are not subscribed to; see `choose_lists`."""
        return choose_lists(self.catalog, self.bundles, purpose, defaults=defaults, leave_out=self.names())

    def files(self) -> list[SourceFile]:
        """Returns the lists of the enabled sources, for the next snapshot; those without a copy are left out."""
        return [item for item, enabled in self.every_file() if enabled]

    def every_file(self) -> list[tuple[SourceFile, bool]]:
        """Returns the lists of all sources that have a copy, and whether they are enabled."""
        return [
            (
                SourceFile(Source(definition.name, definition.action, definition.category), subscription.list_path, list_format),
                definition.enabled,
            )
            for subscription in self.all()
            if (list_format := (definition := subscription.definition).list_format) and subscription.list_path.exists()
        ]

    def add(  # noqa: PLR0913  one parameter an option of the command
        self,
        address: str,
        *,
        name: str = "",
        list_format: ListFormat | None = None,
        category: str = "",
        action: ListAction | None = None,
        interval_h: float = 0.0,
        fetch: bool = True,
        keep_pending: bool = False,
        preview: bool = False,
        look: Callable[[SourceFile], None] | None = None,
        progress: Progress | None = None,
    ) -> UpdateResult:
        """Subscribes to a list, and fetches it at once. On failure nothing is kept, but for `keep_pending`.

        Args:
            address: a name of the catalogue, an http(s) address, or a path to a file, UT1 folder or archive.
            name: by default from the catalogue or the address.
            list_format: by default from the catalogue, or found out.
            category: by default from the catalogue, or guessed from the address.
            action: by default what the category means.
            interval_h: update interval in hours; 0 for that of the catalogue or the settings.
            fetch: False leaves the first download to the next update.
            keep_pending: subscribes, too, when the list cannot be fetched now: for a temporary reason, or any for an address of
                the catalogue, which is known to be right. The next update tries again.
            preview: only report what the list holds; nothing is kept.
            look: called with the plain list of a preview, before it is deleted.
            progress: called with the bytes downloaded.

        Raises:
            SourceError, ListError: it cannot be added; with the reason.
        """
        new = NewSource(address, name, list_format, category, action, interval_h)
        definition = new.definition(self.catalog, self.categories, self._clock())
        name, state, report = definition.name, SourceState(), None
        with locked_source(self._folder, name) as work:
            if not preview and (self._folder / name).exists():
                raise SourceError(f"there is a source {name!r} already")
            result = UpdateResult(name, UpdateStatus.UNCHANGED)
            if fetch or preview:
                keep = keep_pending and not preview
                definition, state, report = self._first_copy(
                    definition, work, progress, keep=keep, always=address in self.catalog
                )
                status = UpdateStatus.UPDATED if report else UpdateStatus.PENDING
                result = UpdateResult(name, status, report, state.error)
            if preview:
                if look and definition.list_format:
                    source = Source(definition.name, definition.action, definition.category)
                    look(SourceFile(source, work / "list", definition.list_format))
                return result
            self._keep_new(work, definition, state, report)
        return result

    def _keep_new(self, work: Path, definition: Definition, state: SourceState, report: ParseReport | None) -> None:
        try:
            if state.checked_at:
                write_json(work / "state.json", state)
            if report is not None:
                write_json(work / "report.json", report)
            (work / "body").unlink(missing_ok=True)
            write_json(work / "source.json", definition)
            work.rename(self._folder / definition.name)
            sync_folder(self._folder)
        except OSError as error:
            raise SourceError(f"cannot keep the source {definition.name!r}: {error.strerror}") from error

    def _first_copy(
        self, definition: Definition, work: Path, progress: Progress | None, *, keep: bool, always: bool
    ) -> tuple[Definition, SourceState, ParseReport | None]:
        """Fetches a new source; without a report where that failed, and the source is to be kept."""
        try:
            return self._first_fetch(definition, work, progress)
        except (SourceError, ListError) as error:
            sentence = str(error)
            if definition.address not in sentence:
                sentence = f"cannot use {definition.address}: {sentence}"
            if not keep or not (always or isinstance(error, TemporaryError)):
                raise type(error)(sentence) from error
            empty(work)  # what was fetched is no list
            return definition, SourceState().failed(self._clock(), sentence, getattr(error, "retry_after_s", 0.0)), None

    def _first_fetch(
        self, definition: Definition, work: Path, progress: Progress | None
    ) -> tuple[Definition, SourceState, ParseReport]:
        got = self._acquire(definition, SourceState(), work, progress)
        if isinstance(got, Validators):
            raise SourceError(f"{definition.address} answers 304 to a first request")
        definition = replace(definition, list_format=got.report.list_format)
        if definition.action is not ListAction.BLOCK and definition.list_format is ListFormat.ADBLOCK:
            raise SourceError("an Adblock list blocks, and has exceptions of its own: add it with --action block")
        return definition, _fresh_state(got, self._clock()), got.report

    def _acquire(
        self, definition: Definition, state: SourceState, work: Path, progress: Progress | None
    ) -> "Acquired | Validators":
        from gatewayfilter.sources.download.acquire import Wanted, acquire  # noqa: PLC0415  with the Adblock engine

        wanted = Wanted(
            address=definition.address,
            list_format=definition.list_format,
            action=definition.action,
            folders={definition.category, *self.categories.get(definition.category).aliases},
            validators=Validators(state.etag, state.last_modified),
            sha256=state.sha256,
            max_bytes=self._settings.max_bytes,
            timeout_s=self._settings.timeout_s,
        )
        return acquire(wanted, work, self._sleep, partial(progress, f"downloading {definition.name}") if progress else None)

    def remove(self, name: str) -> None:
        """Forgets a source and its copy.

        Raises:
            SourceError: there is none, or it comes with the program.
        """
        if name in self._starters:
            raise SourceError(f"{name} comes with the program: disable it instead")
        with locked_source(self._folder, name) as work:
            if not (self._folder / name / "source.json").exists():
                raise MissingSourceError(f"there is no source {name!r}{suggestion(name, self.names())}")
            (self._folder / name).rename(work)  # over the empty folder, at once; the lock's end deletes it

    def enable(self, name: str) -> None:
        """Lets a source take part in the next snapshot. Raises SourceError when there is none."""
        self._switch(name, enabled=True)

    def disable(self, name: str) -> None:
        """Keeps a source out of the next snapshot, and its copy on disk. Raises SourceError when there is none."""
        self._switch(name, enabled=False)

    def _switch(self, name: str, *, enabled: bool) -> None:
        self.get(name)
        with locked_source(self._folder, name):
            definition = self.get(name).definition
            home = self._folder / name
            try:
                home.mkdir(exist_ok=True)
                write_json(home / "source.json", replace(definition, enabled=enabled))
            except OSError as error:
                raise SourceError(f"cannot change the source {name!r}: {error.strerror}") from error

    def update(
        self, names: Sequence[str] | None = None, *, force: bool = False, progress: Progress | None = None, width: int = 1
    ) -> list[UpdateResult]:
        """Updates sources; the failure of one is its result and disturbs no other.

        Args:
            names: which; `None` for those that are due now. Starter lists never change.
            force: fetch again whatever the validators of our copy, and take a list that shrank, too.
            progress: called before each source and at the end; of several at once, with their number alone.
            width: how many are fetched at once.

        Raises:
            SourceError: there is no source of one of these names.
        """
        sweep(self._folder)
        chosen = self.due(self._clock()) if names is None else [self.get(name).definition.name for name in names]
        if width > 1 and len(chosen) > 1:
            report = None if progress is None else partial(progress, f"updating {len(chosen)} sources")
            return in_parallel(chosen, partial(self._update, force=force, only_due=names is None, progress=None), width, report)
        results: list[UpdateResult] = []
        for number, name in enumerate(chosen):
            if progress:
                progress(f"updating {name}", number, len(chosen))
            results.append(self._update(name, force=force, only_due=names is None, progress=progress))
        if progress:
            progress("updated", len(chosen), len(chosen))
        return results

    def _update(self, name: str, *, force: bool, only_due: bool, progress: Progress | None) -> UpdateResult:
        if name in self._starters:
            return UpdateResult(name, UpdateStatus.UNCHANGED)
        try:
            with locked_source(self._folder, name) as work:
                subscription = self.get(name)
                if only_due and subscription.next_due_at > self._clock():
                    return UpdateResult(name, UpdateStatus.UNCHANGED, subscription.report)
                return self._update_locked(subscription, work, force=force, progress=progress)
        except SourceError as error:
            return UpdateResult(name, UpdateStatus.FAILED, error=str(error))

    def _update_locked(self, subscription: Subscription, work: Path, *, force: bool, progress: Progress | None) -> UpdateResult:
        definition, state, old = subscription.definition, subscription.state, subscription.report
        name, now = definition.name, self._clock()
        has_copy = old is not None and subscription.list_path.exists()
        try:
            got = self._acquire(definition, state if has_copy and not force else SourceState(), work, progress)
            if isinstance(got, Validators):
                calm = replace(state, checked_at=now, failures=0, error="", retry_after_s=0.0)
                self._keep_state(name, replace(calm, etag=got.etag, last_modified=got.last_modified))
                return UpdateResult(name, UpdateStatus.UNCHANGED, old)
            if old and has_copy and not force and got.report.entries < old.entries * _LEAST_SHARE:
                why = f"it shrank from {old.entries:,} to {got.report.entries:,} entries; `source update --force` takes it"
                self._keep_state(name, state.failed(now, why))
                return UpdateResult(name, UpdateStatus.KEPT_BACK, got.report, why)
            if old and has_copy and not force and got.validators.may_be_cut and got.report.entries < old.entries:
                why = (
                    f"it may be cut off: it ends within a line, and holds {got.report.entries:,} entries instead of "
                    f"{old.entries:,}; `source update --force` takes it"
                )
                self._keep_state(name, state.failed(now, why))
                return UpdateResult(name, UpdateStatus.KEPT_BACK, got.report, why)
            self._take(definition, got, now)
        except (SourceError, ListError) as error:
            self._keep_state(name, state.failed(now, str(error), getattr(error, "retry_after_s", 0.0)))
            return UpdateResult(name, UpdateStatus.FAILED, old, str(error))
        return UpdateResult(name, UpdateStatus.UPDATED, got.report)

    def _take(self, definition: Definition, got: "Acquired", now: float) -> None:
        """Puts a fetched copy in the place of the last one. Cut off anywhere, the next update makes it good."""
        home = self._folder / definition.name
        try:
            if definition.list_format is not got.report.list_format:
                write_json(home / "source.json", replace(definition, list_format=got.report.list_format))
            got.path.replace(home / "list")
            sync_folder(home)
            write_json(home / "report.json", got.report)
            write_json(home / "state.json", _fresh_state(got, now))
        except OSError as error:
            raise SourceError(f"cannot keep the new copy: {error.strerror}") from error

    def _keep_state(self, name: str, state: SourceState) -> None:
        try:
            write_json(self._folder / name / "state.json", state)
        except OSError as error:
            _log.warning("cannot write the state of source %s: %s", name, error.strerror)


def _fresh_state(got: "Acquired", now: float) -> SourceState:
    validators = got.validators
    return SourceState(validators.etag, validators.last_modified, got.sha256, checked_at=now, changed_at=now)

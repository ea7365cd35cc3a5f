"""Context of one command: the common options (state folder, configuration file, JSON or text), settings and store."""

from __future__ import annotations

from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from gatewayfilter.config import Loaded, Settings
    from gatewayfilter.store import Store


@dataclass(frozen=True, slots=True)
class PendingChange:
    """A change that a command makes, for the audit log.

    Attributes:
        action: its code.
        subject: the arguments of the command.
        detail: its options.
        undo: what takes it back (`use_cases.access.inverses`), `None` where nothing does.
    """

    action: str
    subject: str
    detail: str
    undo: Mapping[str, object] | None = None


@dataclass(slots=True)
class Invocation:
    """The common options, filled in wherever they stand: before or after the command's name.

    Attributes:
        data_dir: `--data-dir`, `None` when the settings decide.
        config: `--config`, `None` for the usual places (`config.load`).
        json: `--json` was given.
        change: of lists and policies, `None` for a command without `audited`.
        undo: what takes back the change of a command with `recorded`, once it was made; `None` where nothing does.
        changed: a command with `recorded` has changed something, whatever its exit code.
    """

    data_dir: Path | None = None
    config: Path | None = None
    json: bool = False
    change: PendingChange | None = None
    undo: Mapping[str, object] | None = None
    changed: bool = False
    _warned: bool = False

    def loaded(self, warn: Callable[[Loaded], None] | None = None, /, **options: object) -> Loaded:
        """Returns the settings with their origins. The first call warns of names of earlier releases.

        Args:
            warn: writes the warning; by default a line on standard error.
            options: settings that the command line gives, `__` for the dot (`proxy__listen`); `None` is passed over.

        Raises:
            ConfigError: a setting is unknown, of the wrong type or out of range, or the file cannot be read.
        """
        from gatewayfilter.config import load

        given = {key.replace("__", "."): value for key, value in options.items()}
        data_dir = self.data_dir.expanduser().absolute() if self.data_dir else None
        loaded = load(file=self.config, options={"data_dir": data_dir, **given})
        if loaded.warnings and not self._warned:
            self._warned = True
            (warn or _print_warning)(loaded)
        return loaded

    def settings(self, **options: object) -> Settings:
        """Returns the settings; see `loaded`."""
        return self.loaded(**options).settings

    @contextmanager
    def store(self) -> Iterator[Store]:
        """Yields the database, open until the end of the `with` block.

        The block of a command with `audited` is one transaction, recorded with its inverse if it changes lists or policies.

        Raises:
            ConfigError, StartupError, StoreError: the settings, the state folder or the database are no good.
        """
        with closing(open_store(self.settings())) as store:
            change = self.change
            if change is None:
                yield store
                return
            from gatewayfilter.cli.ui.actor import command_actor
            from gatewayfilter.use_cases.access.audit_trail import AuditTrail

            with AuditTrail(store).changing(command_actor(), change.action, change.subject, change.detail):
                yield store

    def record(self, change: PendingChange) -> None:
        """Records a change that was made outside lists and policies, where there is a database already."""
        settings = self.settings()
        if not settings.store.url and not (settings.data_dir / "gatewayfilter.sqlite3").exists():
            return
        from gatewayfilter.cli.ui.actor import record

        with closing(open_store(settings)) as store:
            record(store, change.action, change.subject, change.detail, change.undo)


def open_store(settings: Settings) -> Store:
    """Returns the database, which the caller closes. It is migrated when needed, but not under a running filter.

    Raises:
        StartupError, StoreError: the state folder or the database are no good, or a filter of an earlier version runs.
    """
    from functools import partial

    from gatewayfilter import wiring

    return wiring.open_store(settings, before_upgrade=partial(_refuse_while_running, settings.data_dir))


def _refuse_while_running(data_dir: Path) -> None:
    from gatewayfilter.processes.supervision.run_lock import refuse_while_running  # imported only when there is an upgrade to do

    refuse_while_running(data_dir)


def _print_warning(loaded: Loaded) -> None:
    click.echo(f"gatewayfilter: {loaded.warning}", err=True)

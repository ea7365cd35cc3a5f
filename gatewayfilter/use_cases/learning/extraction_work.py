"""Extraction rules shown, changed and tried without loading a parser or the crawler: child processes do the work."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, Final, Protocol

from gatewayfilter.config import Settings
from gatewayfilter.interfaces import RuleMatches
from gatewayfilter.model import Actor
from gatewayfilter.store import Store
from gatewayfilter.store.kept_answers import KeptAnswers
from gatewayfilter.use_cases.access.audit_trail import AuditTrail
from gatewayfilter.use_cases.access.inverses import inverse_of_extraction

MOST_HTML: Final = 600_000
"""Characters of a page that is edited with."""
LONGEST_NAME: Final = 60
LONGEST_SOURCE: Final = 100_000
MOST_ROWS: Final = 60
"""Fields and tables of links of a form."""

_JOBS: Final = "gatewayfilter.use_cases.learning.extraction_jobs:"
_PREVIEW: Final = "gatewayfilter.use_cases.learning.extraction_preview:"


class Child(Protocol):
    """Runs a function in another process."""

    def run(self, job: str, *values: Any, **named: Any) -> Any:
        """Returns its result."""
        ...


class ExtractionWork:
    """The work of `extraction_jobs` and `extraction_preview`, with their errors. Changes are recorded with their inverse.

    Args:
        editing: runs the work on rules and pages.
        fetching: fetches pages.
        settings: the settings.
        store: with the audit log, and the counts of what rules have read.
        clock: Unix seconds.
    """

    def __init__(self, editing: Child, fetching: Child, settings: Settings, store: Store, clock: Callable[[], float]) -> None:
        self._editing = editing
        self._fetching = fetching
        self._settings = settings
        self._store = store
        self._trail = AuditTrail(store, clock)

    def rules(self) -> list[dict[str, Any]]:
        """Returns the rules in use, in the order in which they are tried, with what they have read.

        Raises:
            StoreError: the database refuses.
        """
        files = list((self._settings.data_dir / "rules").glob("*.toml"))
        kept = KeptAnswers(self._settings.data_dir / "cache")
        return self._with_matches(kept.rows("extraction-rules", files, partial(self._job, "list_rules")) if files else [])

    def rule(self, name: str, version: int = 0) -> dict[str, Any]:
        """Returns a rule with its text, rows and versions."""
        found: dict[str, Any] = self._job("show_rule", name, version)
        return self._with_matches([found])[0]

    def save(self, actor: Actor, name: str, source: str, based_on: int | None = None) -> tuple[dict[str, Any], int]:
        """Puts a rule to use. Returns its change, and the number of the audit entry, 0 where nothing was changed."""
        return self._recorded(actor, "extraction.added", self._job("save_rule", name, source, based_on))

    def restore(self, actor: Actor, name: str, version: int, based_on: int | None = None) -> tuple[dict[str, Any], int]:
        """Puts an earlier version to use again. Returns as `save`."""
        return self._recorded(actor, "extraction.restored", self._job("restore_rule", name, version, based_on))

    def remove(self, actor: Actor, name: str, based_on: int | None = None) -> tuple[dict[str, Any], int]:
        """Takes a rule out of use. Returns as `save`."""
        return self._recorded(actor, "extraction.removed", self._job("remove_rule", name, based_on))

    def form(self, source: str) -> dict[str, Any]:
        """Returns a rule as the rows of a form."""
        found: dict[str, Any] = self._job("form_of_source", source)
        return found

    def source(self, form: Mapping[str, Any]) -> str:
        """Returns the rows of a form as TOML."""
        return str(self._job("source_of_form", dict(form)))

    def suggested_urls(self, url: str) -> Sequence[str]:
        """Returns expressions for the site, the folder and the page of an address."""
        found: list[str] = self._job("suggested_urls", url)
        return found

    def fetch(self, url: str) -> dict[str, str]:
        """Fetches a page: `html` and `url` after redirects. Nothing is learned."""
        found: dict[str, str] = self._fetching.run(f"{_PREVIEW}fetch_page", self._settings, url)
        return found

    def outline(self, html: str) -> dict[str, Any]:
        """Returns a page as the editor shows it."""
        found: dict[str, Any] = self._editing.run(f"{_PREVIEW}outline", self._settings, html)
        return found

    def preview(self, html: str, url: str, form: Mapping[str, Any], picked: int) -> dict[str, Any]:
        """Returns what each row of a form takes from a page, and proposals for an element."""
        found: dict[str, Any] = self._editing.run(f"{_PREVIEW}preview", self._settings, html, url, dict(form), picked)
        return found

    def read_page(self, html: str, url: str, source: str) -> dict[str, Any]:
        """Returns what a rule takes from a page."""
        found: dict[str, Any] = self._editing.run(f"{_PREVIEW}read_page", self._settings, html, url, source)
        return found

    def _with_matches(self, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        matches = self._store.rule_matches.all()
        return [row | asdict(matches.get(row["name"], RuleMatches())) for row in rows]

    def _job(self, job: str, *values: Any) -> Any:
        return self._editing.run(f"{_JOBS}{job}", self._settings, *values)

    def _recorded(self, actor: Actor, action: str, change: dict[str, Any]) -> tuple[dict[str, Any], int]:
        before, after = change["before"], change["after"]
        if before == after:
            return change, 0
        detail = f"version {after}" if after else f"was version {before}"
        undo = inverse_of_extraction([(change["name"], before, after)])
        return change, self._trail.record(actor, action, change["name"], detail, undo)

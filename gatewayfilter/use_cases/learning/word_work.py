"""Words shown, changed and tried without loading the classifier: a child process does the work of `word_jobs`."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, Protocol

from gatewayfilter.config import Settings
from gatewayfilter.model import Actor
from gatewayfilter.store import Store
from gatewayfilter.store.kept_answers import KeptAnswers
from gatewayfilter.use_cases.access.audit_trail import AuditTrail
from gatewayfilter.wiring import words_folders

LONGEST_PHRASE: Final = 200
"""Characters."""
MOST_TEXT: Final = 400_000
"""Characters of a page that is judged."""
KINDS: Final = ("word", "combination", "near", "context", "exception", "removed")

_JOBS: Final = "gatewayfilter.use_cases.learning.word_jobs:"
_MOST_NOTED: Final = 500
"""Characters of the phrases that the audit log keeps."""


class Child(Protocol):
    """Runs a function in another process."""

    def run(self, job: str, *values: Any, **named: Any) -> Any:
        """Returns its result."""
        ...


class WordWork:
    """The work of `word_jobs`; errors are those of the use cases of `words`. Changes are recorded in the audit log.

    Args:
        child: runs the work.
        settings: the settings.
        store: with the audit log.
        clock: Unix seconds.
    """

    def __init__(self, child: Child, settings: Settings, store: Store, clock: Callable[[], float]) -> None:
        self._child = child
        self._settings = settings
        self._trail = AuditTrail(store, clock)

    def categories(self) -> list[dict[str, Any]]:
        """Returns the categories of words, by name."""
        files = [path for folder in words_folders(self._settings) for path in folder.glob("*.toml")]
        kept, judging = KeptAnswers(self._settings.data_dir / "cache"), self._settings.classify
        return kept.rows("words", files, partial(self._run, "categories"), (judging.topics, judging.strictness))

    def find(self, category: str, **query: Any) -> dict[str, Any]:
        """Returns words of a category; arguments are those of `word_jobs.find_words`."""
        found: dict[str, Any] = self._run("find_words", category, **query)
        return found

    def export(self, category: str, *, own: bool) -> str:
        """Returns the words of a category as TOML."""
        return str(self._run("export", category, own=own))

    def judge(self, content: str, *, html: bool, url: str) -> dict[str, Any]:
        """Judges a page or text; nothing is learned."""
        judged: dict[str, Any] = self._run("judge", content, html=html, url=url)
        return judged

    def add(self, actor: Actor, category: str, phrases: Sequence[str], **terms: Any) -> int:
        """Adds phrases; returns how many were new or changed. `terms` are the rest of `words.NewPhrases`."""
        changed = int(self._run("add", category=category, phrases=tuple(phrases), **terms))
        self._record(actor, "words.added", category, phrases)
        return changed

    def remove(self, actor: Actor, category: str, phrases: Sequence[str]) -> dict[str, Any]:
        """Removes phrases; returns `removed` and those `missing`."""
        removed: dict[str, Any] = self._run("remove", category, list(phrases))
        self._record(actor, "words.removed", category, phrases)
        return removed

    def import_file(self, actor: Actor, category: str, content: bytes, name: str, weight: float) -> dict[str, Any]:
        """Imports phrases; returns what `words.WordImport` has."""
        done: dict[str, Any] = self._run("import_file", content, name, category, weight)
        self._record(actor, "words.imported", category, [f"{done['changed']} of {done['read']}"])
        return done

    def _run(self, job: str, *values: Any, **named: Any) -> Any:
        return self._child.run(f"{_JOBS}{job}", self._settings, *values, **named)

    def _record(self, actor: Actor, action: str, category: str, phrases: Sequence[str]) -> None:
        self._trail.record(actor, action, category, ", ".join(phrases)[:_MOST_NOTED])

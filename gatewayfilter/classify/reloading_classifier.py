"""A classifier that follows its words: files that change on disk are taken in while it is in use."""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from hashlib import md5
from pathlib import Path

from gatewayfilter.classify.classifier import PageClassifier
from gatewayfilter.classify.imitated_services import SERVICES_FILE, ImitatedServices
from gatewayfilter.classify.lexicon.lexicon import Lexicon
from gatewayfilter.classify.lexicon.scanner import Scanner
from gatewayfilter.classify.lexicon.word_file import read_word_file
from gatewayfilter.classify.models.linear_model import MODEL_FILE, LinearModel
from gatewayfilter.classify.models.text_model import TEXT_MODEL_FILE, TextModel
from gatewayfilter.classify.score_breakdown import breakdown_of
from gatewayfilter.errors import ClassifyError
from gatewayfilter.extraction.rule_book import RuleBook
from gatewayfilter.interfaces import Page
from gatewayfilter.model import Classification, ScoreBreakdown
from gatewayfilter.settings import Extractor, Strictness

_log = logging.getLogger(__name__)

CHECK_EVERY_S = 1.0
"""Looking at the files costs some 0.1 ms, so a page pays for it at most once in this time."""

_JUDGING = ("classify", "documents", "extraction")
"""The packages whose code decides what comes out of a page."""

_CODE = Path(__file__).parents[1]

_READING = threading.Lock()
"""One thread reads words at a time: another one that needs the same takes what the first has read."""

type _State = tuple[str | int, ...]
type _Signature = tuple[_State, ...]


class ReloadingClassifier:
    """Judges pages by the words that stand in these folders now. Implements `interfaces.Classify`.

    A change is taken in by the first page judged at least `CHECK_EVERY_S` after the last check, in the thread that judges it:
    call it off the event loop, as any `Classify`. While the new words are compiled, other threads judge by the old ones. Files
    that cannot be used leave the last good words in use; that is logged once for each state of the files.

    Args:
        folders: as for `Lexicon.load`.
        clock: seconds, monotonic.
        extractor: as for `PageClassifier`; so is `rules`, which follow their folder themselves.
        topics: whether the text model decides beside the words, where a folder holds one.
        strictness: as for `PageClassifier`; so is `remembers`.

    Raises:
        ClassifyError: the words cannot be used at the start, when there are no last good ones.
    """

    def __init__(
        self,
        folders: Sequence[Path],
        clock: Callable[[], float] = time.monotonic,
        extractor: Extractor = Extractor.DENSITY,
        rules: RuleBook | None = None,
        *,
        topics: bool = True,
        strictness: Strictness = Strictness.STANDARD,
        remembers: int = 0,
    ) -> None:
        self._remembers = remembers
        self._strictness = strictness
        self._rules = rules
        self._topics = topics
        self._extractor = extractor
        self._folders = tuple(folders)
        self._clock = clock
        self._one = threading.Lock()
        self._look_at = clock() + CHECK_EVERY_S
        self._seen = self._signature()
        self._version = self._digest()
        self._current = self._load()

    def classify_page(self, page: Page) -> Classification:
        """Judges a fetched page, as `PageClassifier` does."""
        return self._newest().classify_page(page)

    def classify_text(self, text: str) -> Classification:
        """Judges plain text, as `PageClassifier` does."""
        return self._newest().classify_text(text)

    def text_of(self, page: Page) -> str:
        """Returns the text of a page, as `PageClassifier` does."""
        return self._current.text_of(page)

    def breakdown_of(self, page: Page, category: str) -> ScoreBreakdown | None:
        """Returns how a page's score in a category came about, `None` where nothing on the page counts for it."""
        version = self.words_version()
        return breakdown_of(self._current.explain(page), version, category)

    def words_version(self) -> str:
        """Returns what names the words and extraction rules in use: others have another name."""
        self._newest()
        rules = self._rules.version() if self._rules is not None else ""
        return f"{self._version}{rules}"

    def _newest(self) -> PageClassifier:
        if self._clock() >= self._look_at and self._one.acquire(blocking=False):
            try:
                self._follow()
                self._look_at = self._clock() + CHECK_EVERY_S
            finally:
                self._one.release()
        return self._current

    def _follow(self) -> None:
        try:
            signature = self._signature()
            if signature == self._seen:
                return
            self._seen = signature  # before the files are read: one that changes meanwhile is read again
            version = self._digest()
            self._current = self._load()
            self._version = version
        except ClassifyError as error:
            _log.warning("%s; pages are judged by the words as they were before", error)
        else:
            _log.info("words or model have changed: %d words in use", self._current.lexicon.word_count())

    def _load(self) -> PageClassifier:
        return load_classifier(
            self._folders,
            self._extractor,
            self._rules,
            topics=self._topics,
            strictness=self._strictness,
            remembers=self._remembers,
        )

    def _digest(self) -> str:
        return words_version(self._folders, topics=self._topics, strictness=self._strictness)

    def _signature(self) -> _Signature:
        files = [path for folder in self._folders for path in _files(folder, topics=self._topics)]
        named = _services_file(self._folders)
        return tuple(map(_state, [*files, named] if named is not None else files))


def load_classifier(
    folders: Sequence[Path],
    extractor: Extractor = Extractor.DENSITY,
    rules: RuleBook | None = None,
    *,
    topics: bool = True,
    strictness: Strictness = Strictness.STANDARD,
    remembers: int = 0,
) -> PageClassifier:
    """Returns the classifier by the words and the models that stand in these folders; the last model of each kind counts.

    With `topics`, the text model of a folder decides beside the words. It withdraws no verdict in categories of which a later
    folder has words. Classifiers of the same words share them in memory.

    Raises:
        ClassifyError: a file is damaged.
    """
    models = [model for folder in folders if (model := LinearModel.load(folder / MODEL_FILE))]
    named = _services_file(folders)
    services = ImitatedServices.load(named) if named is not None else None
    with _READING:
        words = _words_in(folders, topics=topics)
    model = models[-1] if models else None
    return PageClassifier(words.scanner, model, extractor, rules, words.texts, strictness, services, remembers=remembers)


@dataclass(frozen=True, slots=True)
class _Folders:
    """Folders of words: the same ones as others whose files have the same contents."""

    digest: bytes
    folders: tuple[Path, ...] = field(compare=False)
    topics: bool = field(compare=False)


@dataclass(frozen=True, slots=True)
class _Words:
    """What is read of folders and never changes: more than a second of CPU time and 25 MB with the bundled words."""

    scanner: Scanner
    texts: TextModel | None


def _words_in(folders: Sequence[Path], *, topics: bool) -> _Words:
    """Returns what these folders hold; what changed while it was read is not kept under its earlier name."""
    given = _Folders(_digest_of(folders, topics=topics), tuple(folders), topics)
    words = _words_of(given)
    if _digest_of(folders, topics=topics) != given.digest:
        _words_of.cache_clear()
    return words


@lru_cache(maxsize=1)
def _words_of(given: _Folders) -> _Words:
    return _Words(Scanner(Lexicon.load(given.folders)), _text_model(given.folders) if given.topics else None)


def _digest_of(folders: Sequence[Path], *, topics: bool) -> bytes:
    """Returns what names the words and text models of these folders, each file with its name and its folder's place."""
    digest = md5(usedforsecurity=False)
    for place, folder in enumerate(folders):
        for path in [*sorted(folder.glob("*.toml")), *(folder.glob(TEXT_MODEL_FILE) if topics else ())]:
            content = b""
            with contextlib.suppress(OSError):  # whoever reads it says so
                content = path.read_bytes()
            digest.update(f"{place}/{path.name}/{len(content)}\0".encode(errors="surrogateescape") + content)
    return digest.digest()


def _services_file(folders: Sequence[Path]) -> Path | None:
    return next((path for folder in folders if (path := folder.parent / SERVICES_FILE).exists()), None)


def _text_model(folders: Sequence[Path]) -> TextModel | None:
    found: TextModel | None = None
    for folder in folders:
        if (model := TextModel.load(folder / TEXT_MODEL_FILE)) is not None:
            found = model
        elif found is not None:
            added = {read_word_file(path).category for path in folder.glob("*.toml")}
            found = replace(found, additive=found.additive | added)
    return found


def _files(folder: Path, *, topics: bool) -> list[Path]:
    return [*sorted(folder.glob("*.toml")), *folder.glob(MODEL_FILE), *(folder.glob(TEXT_MODEL_FILE) if topics else ())]


def words_version(folders: Sequence[Path], *, topics: bool = True, strictness: Strictness = Strictness.STANDARD) -> str:
    """Returns what names the words and models of these folders and the code that judges by them: others have another name.

    A judgement made under another version may come out differently today; kept judgements stay what they were.
    """
    digest = md5(judging_code(_CODE), usedforsecurity=False)
    digest.update(b"" if strictness is Strictness.STANDARD else strictness.encode())
    for folder in folders:
        for path in _files(folder, topics=topics):
            with contextlib.suppress(OSError):
                digest.update(path.read_bytes())
    if (named := _services_file(folders)) is not None:
        with contextlib.suppress(OSError):
            digest.update(named.read_bytes())
    return digest.hexdigest()


@cache
def judging_code(root: Path) -> bytes:
    """Returns a digest, 16 bytes, of the code below `root` that reads and judges pages: what judges otherwise has another.

    Compiled modules do the same as their sources, so that only these count. Reading them takes some 3 ms, once a process.
    """
    digest = md5(usedforsecurity=False)
    for package in _JUDGING:
        for path in sorted((root / package).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.digest()


def _state(path: Path) -> _State:
    """Returns path, time of change, size and inode, as far as they are known: a file renamed into place has a new inode."""
    try:
        status = path.stat()
    except OSError:
        return (str(path),)
    return str(path), status.st_mtime_ns, status.st_size, status.st_ino

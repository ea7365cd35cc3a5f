"""Extraction rules in the state folder: `rules/NAME.toml` is in use, `rules/history/NAME/0001.toml` and on is what it was.

Each file is written whole and renamed into place. Versions count up from 1 and are never used again, not after a removal either.
"""

import contextlib
import fcntl
import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gatewayfilter.errors import ClassifyError, MissingRuleError
from gatewayfilter.extraction.rules import MAX_FILE, ExtractionRule, parse_rule
from gatewayfilter.private_files import private

MAX_RULES = 500
_HISTORY = "history"
_LOCK = ".lock"
_VERSION = re.compile(r"(\d{4,9})\.toml")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,59}")


@dataclass(frozen=True, slots=True)
class RuleVersion:
    """One state of a rule: its number, when it was written (Unix seconds), whether it is in use."""

    name: str
    version: int
    written_at: float
    in_use: bool


def read_rule_file(path: Path, name: str = "", version: int = 0) -> ExtractionRule:
    """Reads a rule from a file; its name, where it gives none, is the file's.

    Raises:
        ClassifyError: it cannot be read or used; the sentence names the file.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE * 4 + 1)
        return parse_rule(data.decode("utf-8-sig"), name or path.stem.lower(), version)
    except OSError as error:
        raise ClassifyError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ClassifyError(f"{path} is not text in UTF-8") from error
    except ClassifyError as error:
        raise ClassifyError(f"{path}: {error}") from error


class RuleFolder:
    """The operator's rules, to read and to change."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """Keeps other processes from changing rules during the block; they wait.

        Raises:
            ClassifyError: the folder cannot be written.
        """
        with contextlib.ExitStack() as stack:
            try:
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                lock = stack.enter_context(open(self._folder / _LOCK, "w", opener=private))
            except OSError as error:
                raise ClassifyError(f"cannot write {self._folder}: {error.strerror}") from error
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def names(self) -> list[str]:
        """Returns the names of the rules in use, in the order in which they are asked."""
        return sorted(path.stem for path in self._folder.glob("*.toml") if _NAME.fullmatch(path.stem))[:MAX_RULES]

    def rule(self, name: str, version: int = 0) -> ExtractionRule:
        """Returns a rule: the one in use, or one of its versions.

        Raises:
            ClassifyError: there is none, or its file is damaged.
        """
        if version:
            path = self._version_path(name, version)
            if not path.exists():
                raise MissingRuleError(f"the rule {name!r} has no version {version}")
            return self._checked(read_rule_file(path, name, version), name, path)
        path = self._path(name)
        if not path.exists():
            raise MissingRuleError(f"no rule {name!r}; there are: {', '.join(self.names()) or 'none'}")
        return self._checked(read_rule_file(path, name, self._newest(name)), name, path)

    def add(self, rule: ExtractionRule) -> ExtractionRule:
        """Puts a rule to use as a new version; one that is in use word for word stays as it is.

        Returns:
            The rule with its version.

        Raises:
            ClassifyError: it cannot be written, or there are too many.
        """
        path = self._path(rule.name)
        if path.exists():
            with contextlib.suppress(OSError, UnicodeDecodeError):
                if path.read_text(encoding="utf-8") == rule.source:
                    return self.rule(rule.name)
        elif len(self.names()) >= MAX_RULES:
            raise ClassifyError(f"there are {MAX_RULES} rules already")
        version = self._newest(rule.name) + 1
        _write(self._version_path(rule.name, version), rule.source)
        _write(path, rule.source)
        return self.rule(rule.name)

    def restore(self, name: str, version: int) -> ExtractionRule:
        """Puts an earlier version to use again, as a new one. Raises as `rule` and `add`."""
        return self.add(self.rule(name, version))

    def remove(self, name: str) -> bool:
        """Takes a rule out of use; its history stays. Returns whether there was one.

        Raises:
            ClassifyError: it cannot be removed.
        """
        path = self._path(name)
        try:
            path.unlink()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise ClassifyError(f"cannot remove {path}: {error.strerror}") from error
        return True

    def history(self, name: str) -> list[RuleVersion]:
        """Returns the versions of a rule, the oldest first; none for one that never was."""
        path = self._path(name)
        current = path.read_bytes() if path.exists() else None
        found = []
        for number, version in self._versions(name):
            found.append(RuleVersion(name, number, version.stat().st_mtime, in_use=False))
        if found and current is not None and self._version_path(name, found[-1].version).read_bytes() == current:
            last = found.pop()
            found.append(RuleVersion(name, last.version, last.written_at, in_use=True))
        return found

    def keep(self, name: str) -> None:
        """Makes a version of the rule in use where its file was written by hand: no change loses anything.

        Raises:
            ClassifyError: it cannot be written.
        """
        path, newest = self._path(name), self._newest(name)
        try:
            current = path.read_text(encoding="utf-8")
            if not newest or self._version_path(name, newest).read_text(encoding="utf-8") != current:
                _write(self._version_path(name, newest + 1), current)
        except (FileNotFoundError, UnicodeDecodeError):
            return
        except OSError as error:
            raise ClassifyError(f"cannot read {path}: {error.strerror}") from error

    def signature(self) -> tuple[tuple[str, int, int, int], ...]:
        """Returns what changes when a rule in use does: name, time of change, size and inode of each file."""
        states = []
        for name in self.names():
            with contextlib.suppress(OSError):
                status = self._path(name).stat()
                states.append((name, status.st_mtime_ns, status.st_size, status.st_ino))
        return tuple(states)

    def _checked(self, rule: ExtractionRule, name: str, path: Path) -> ExtractionRule:
        if rule.name != name:
            raise ClassifyError(f"{path} holds a rule of another name, {rule.name!r}")
        return rule

    def _path(self, name: str) -> Path:
        if not _NAME.fullmatch(name):
            raise ClassifyError(f"a rule's name has 1 to 60 small letters, digits, - and _, not {name[:80]!r}")
        return self._folder / f"{name}.toml"

    def _version_path(self, name: str, version: int) -> Path:
        self._path(name)
        return self._folder / _HISTORY / name / f"{version:04}.toml"

    def _versions(self, name: str) -> list[tuple[int, Path]]:
        folder = self._folder / _HISTORY / name
        files = folder.glob("*.toml") if folder.is_dir() else ()
        return sorted((int(match[1]), path) for path in files if (match := _VERSION.fullmatch(path.name)))

    def _newest(self, name: str) -> int:
        versions = self._versions(name)
        return versions[-1][0] if versions else 0


def _write(path: Path, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:  # half of a surrogate pair, which JSON can bring
        raise ClassifyError("the rule has a character that is no text") from error
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=".", encoding="utf-8", newline="", delete=False) as aside:
            aside.write(text)
            aside.flush()
            os.fsync(aside.fileno())
        Path(aside.name).replace(path)
    except OSError as error:
        raise ClassifyError(f"cannot write {path}: {error.strerror}") from error

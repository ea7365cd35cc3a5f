"""The files of a backup: which of the state folder are in it, under which names, and where they belong."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gatewayfilter.config import Settings

SETTINGS: Final = "settings.toml"
PROXY_USERS: Final = "proxy-users"
SEALED_CA: Final = "ca.sealed"
STATE: Final = "state/"
TABLES: Final = "tables/"
MAX_SMALL_FILE: Final = 64 * 1024 * 1024
"""Most bytes of a file that is no table and no list."""

_FOLDERS: Final = {"words": "words", "rules": "extraction rules", "sources": "subscriptions"}
_FILES: Final = {
    "client.key": "secrets of this installation",
    "fingerprints.key": "secrets of this installation",
    "request.key": "secrets of this installation",
    "services.toml": "services of your own",
    "pinned-apps.json": "pinned apps",
}
_SOURCE_FILES: Final = frozenset({"source.json", "list", "state.json", "report.json"})
_PART: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,119}", re.ASCII)
_DEEPEST: Final = 4


def is_state_name(name: str) -> bool:
    """Returns whether a path, relative to the state folder, is one of a backup. No other one is ever written."""
    parts = name.split("/")
    if len(parts) == 1:
        return name in _FILES
    if parts[0] == "sources":
        return len(parts) == 3 and _PART.fullmatch(parts[1]) is not None and parts[2] in _SOURCE_FILES
    return parts[0] in _FOLDERS and len(parts) <= _DEEPEST and all(map(_PART.fullmatch, parts))


def kind_of(name: str) -> str:
    """Returns what a file of the state folder is, for people."""
    top = name.partition("/")[0]
    return _FOLDERS.get(top) or _FILES[top]


def unit_of(name: str) -> str:
    """Returns what is counted as one: a file, or all files of a subscription."""
    return "/".join(name.split("/")[:2]) if name.startswith("sources/") else name


def is_replaced_as_a_whole(name: str) -> bool:
    """Returns whether a file that a backup does not have is removed by its restore."""
    return name.partition("/")[0] in _FOLDERS


def is_copy_of_a_list(name: str) -> bool:
    """Returns whether a file is the last copy of a subscription, and not its definition."""
    return name.startswith("sources/") and not name.endswith("/source.json")


def state_files(data_dir: Path) -> Iterator[str]:
    """Yields the files of the state folder that belong into a backup, sorted; no links."""
    found = [name for name in _FILES if _is_file(data_dir / name)]
    for folder in _FOLDERS:
        top = data_dir / folder
        for path in top.rglob("*") if not top.is_symlink() else ():
            name = path.relative_to(data_dir).as_posix()
            if is_state_name(name) and _is_file(path):
                found.append(name)
    yield from sorted(found)


def _is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


@dataclass(frozen=True, slots=True)
class Places:
    """Where the files of an installation are.

    Attributes:
        data_dir: the state folder.
        settings_file: in use; where there is none, the one in the state folder.
        proxy_users: the file that `proxy.auth_file` names; where there is none, one in the state folder.
        ca: the folder of the certificate authority.
    """

    data_dir: Path
    settings_file: Path
    proxy_users: Path
    ca: Path

    @classmethod
    def of(cls, settings: Settings, settings_file: Path | None) -> "Places":
        """Returns the places by the settings in use; `settings_file` is `None` where no file is in use."""
        data_dir = settings.data_dir
        return cls(
            data_dir,
            settings_file or data_dir / "config.toml",
            settings.proxy.auth_file or data_dir / "proxy-users",
            data_dir / "ca",
        )

"""Makers of network interfaces by MAC: the registry of the IEEE, as a package of the operating system provides it.

No table comes with the program: the registry changes weekly, and distributions maintain it (`ieee-data`, `hwdata`, `nmap`, the
hardware database of systemd). The first one that is installed is read.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

TABLES: Final = tuple(
    map(
        Path,
        (
            "/usr/share/ieee-data/oui.txt",
            "/var/lib/ieee-data/oui.txt",
            "/usr/share/hwdata/oui.txt",
            "/usr/lib/udev/hwdb.d/20-OUI.hwdb",
            "/lib/udev/hwdb.d/20-OUI.hwdb",
            "/usr/share/nmap/nmap-mac-prefixes",
            "/usr/share/wireshark/manuf",
        ),
    )
)
"""Where distributions keep the registry."""

_MOST_BYTES: Final = 32_000_000
_LONGEST: Final = 60
_LOCAL_BIT: Final = 0x02
_PRIVATE: Final = "private MAC"
_IEEE: Final = re.compile(r"([0-9A-F]{2})-([0-9A-F]{2})-([0-9A-F]{2})\s+\(hex\)\s+(.+)")
_PLAIN: Final = re.compile(r"([0-9A-Fa-f]{2}):?([0-9A-Fa-f]{2}):?([0-9A-Fa-f]{2})\s+(.+)")
_HWDB_KEY: Final = re.compile(r"OUI:([0-9A-F]{2})([0-9A-F]{2})([0-9A-F]{2})\*")
_HWDB_VALUE: Final = " ID_OUI_FROM_DATABASE="


def makers_of(macs: Iterable[str], tables: Sequence[Path] = TABLES) -> dict[str, str]:
    """Returns the makers of these MACs: MAC → maker; unknown ones are left out, and all where no table is installed.

    A MAC that its device chose itself (private or virtual) has no maker and is named so. Reads the table: some 100 ms.

    Args:
        macs: as `aa:bb:cc:dd:ee:ff`.
        tables: files to look for, the first that can be read counts.
    """
    found = {mac: _PRIVATE for mac in macs if int(mac[:2], 16) & _LOCAL_BIT}
    wanted: dict[str, list[str]] = {}
    for mac in macs:
        if mac not in found:
            wanted.setdefault(mac[:8].replace(":", "").upper(), []).append(mac)
    if wanted:
        for prefix, maker in _entries(tables):
            for mac in wanted.get(prefix, ()):
                found.setdefault(mac, maker)
    return found


def has_table(tables: Sequence[Path] = TABLES) -> bool:
    """Returns whether any table is installed."""
    return any(path.is_file() for path in tables)


def _entries(tables: Sequence[Path]) -> list[tuple[str, str]]:
    for path in tables:
        try:
            with path.open("rb") as file:
                text = file.read(_MOST_BYTES).decode("utf-8", "replace")
        except OSError:
            continue
        if entries := _read(text):
            return entries
    return []


def _read(text: str) -> list[tuple[str, str]]:
    entries: list[tuple[str, str]] = []
    key = ""
    for line in text.splitlines():
        if match := _IEEE.match(line) or _PLAIN.match(line):
            maker = match[4].partition("\t")[2] or match[4]
            entries.append(("".join(match.group(1, 2, 3)).upper(), _shown(maker)))
        elif match := _HWDB_KEY.fullmatch(line.strip()):
            key = "".join(match.groups())
        elif key and line.startswith(_HWDB_VALUE):
            entries.append((key, _shown(line.removeprefix(_HWDB_VALUE))))
            key = ""
    return entries


def _shown(maker: str) -> str:
    return "".join(mark for mark in maker if mark.isprintable()).strip()[:_LONGEST]

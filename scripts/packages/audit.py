"""Compares the locked packages with published advisories, without a network: a copy of the OSV database is given as a file.

    make audit ARGS=PyPI.zip

The copy is a zip archive, or a folder, of OSV records as JSON: osv.dev publishes that of PyPI as
https://osv-vulnerabilities.storage.googleapis.com/PyPI/all.zip. Each hit is a line: package, version, advisory, the first
version without the fault, summary. The exit code is 1 where there are hits, 2 where nothing could be compared.

Source: Open Source Vulnerability format, https://ossf.github.io/osv-schema/ (affected, ranges, evaluation).
"""

import argparse
import json
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version
from sbom import LOCKED, ROOT

LOCKS = ("runtime", "dev", "bench", "fuzz", "services")


def locked(paths: list[Path]) -> dict[str, set[str]]:
    """Returns the packages of lock files: canonical name to versions."""
    found: dict[str, set[str]] = {}
    for path in paths:
        for name, version, _, _ in LOCKED.findall(path.read_text(encoding="utf-8")):
            found.setdefault(canonicalize_name(name), set()).add(version)
    return found


def advisories(source: Path) -> Iterator[dict[str, Any]]:
    """Yields the records of a zip archive or folder."""
    if source.is_dir():
        for path in sorted(source.rglob("*.json")):
            yield json.loads(path.read_bytes())
        return
    with zipfile.ZipFile(source) as archive:
        for name in sorted(archive.namelist()):
            if name.endswith(".json"):
                yield json.loads(archive.read(name))


def is_affected(version: str, affected: dict[str, Any]) -> bool:
    """Returns whether a version is named, or lies in one of the ranges. An unreadable range counts as a hit: a person looks."""
    if version in affected.get("versions", ()):
        return True
    ranges = [one for one in affected.get("ranges", ()) if one.get("type") == "ECOSYSTEM"]
    try:
        return any(_lies_in(Version(version), one.get("events", ())) for one in ranges)
    except InvalidVersion:
        return True


def _lies_in(version: Version, events: list[dict[str, str]]) -> bool:
    inside = False
    ordered = sorted(
        (
            (Version(text if text != "0" else "0.dev0"), kind)
            for event in events
            for kind, text in event.items()
            if kind != "limit"
        ),
        key=lambda event: (event[0], event[1] == "last_affected"),
    )
    for bound, kind in ordered:
        if kind == "introduced" and version >= bound:
            inside = True
        elif (kind == "fixed" and version >= bound) or (kind == "last_affected" and version > bound):
            inside = False
    return inside


def hits(packages: dict[str, set[str]], source: Path) -> Iterator[tuple[str, str, str, str, str]]:
    """Yields package, version, advisory, fixed version, summary; withdrawn advisories are passed over."""
    for record in advisories(source):
        for affected in record.get("affected", ()) if "withdrawn" not in record else ():
            package = affected.get("package", {})
            name = canonicalize_name(package.get("name", ""))
            if package.get("ecosystem") != "PyPI" or name not in packages:
                continue
            events = [event for one in affected.get("ranges", ()) for event in one.get("events", ())]
            fixed = ", ".join(event["fixed"] for event in events if "fixed" in event and len(event["fixed"]) < 30) or "none"
            for version in sorted(packages[name]):
                if is_affected(version, affected):
                    yield name, version, record.get("id", "?"), fixed, " ".join(record.get("summary", "").split())[:120]


def main() -> int:
    """Prints the hits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("advisories", type=Path, help="zip archive or folder of OSV records")
    parser.add_argument("--lock", type=Path, action="append", help="lock files; all of requirements/ by default")
    options = parser.parse_args()
    packages = locked(options.lock or [ROOT / "requirements" / f"{name}.lock" for name in LOCKS])
    try:
        found = sorted(set(hits(packages, options.advisories)))
        count = sum(1 for _ in advisories(options.advisories))
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        print(f"audit: {options.advisories} cannot be read: {error}", file=sys.stderr)
        return 2
    for name, version, advisory, fixed, summary in found:
        print(f"{name} {version}  {advisory}  fixed in: {fixed}  {summary}")
    print(f"{len(packages)} packages compared with {count:,} advisories: {len(found)} hits", file=sys.stderr)
    if not count or not packages:
        return 2
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

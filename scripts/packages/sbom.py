"""Prints what the installed program consists of as CycloneDX 1.6 (JSON); `--licences` prints a line for each package instead.

Names, versions and hashes are those of requirements/runtime.lock; licences are read from the packages that are installed.
"""

import json
import re
import sys
import uuid
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "requirements" / "runtime.lock"
LOCKED = re.compile(r"^([A-Za-z0-9][\w.-]*)==([^\s;\\]+)([^\\\n]*)((?:\s*\\\n\s+--hash=sha256:[0-9a-f]{64})*)", re.MULTILINE)


def licence_of(package: metadata.Distribution) -> str:
    """Returns the licence that a package declares: its expression, else its classifiers, else the first line of its text."""
    fields = package.metadata
    if expression := fields.get("License-Expression"):
        return expression
    classified = [line.rpartition(" :: ")[2] for line in fields.get_all("Classifier", []) if line.startswith("License ::")]
    text = (fields.get("License") or "").strip().splitlines()
    return "; ".join(classified) or (text[0] if text else "unknown")


def components(lock: Path) -> Iterator[dict[str, Any]]:
    """Yields the packages of a lock file that are installed here; those of other platforms are left out."""
    for name, version, _, hashes in LOCKED.findall(lock.read_text(encoding="utf-8")):
        try:
            package = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        if package.version != version:
            continue
        yield {
            "type": "library",
            "bom-ref": f"pkg:pypi/{name.lower()}@{version}",
            "name": name,
            "version": version,
            "purl": f"pkg:pypi/{name.lower()}@{version}",
            "licenses": [{"license": {"name": licence_of(package)}}],
            "properties": [
                {"name": "gatewayfilter:sha256", "value": each} for each in re.findall(r"sha256:([0-9a-f]{64})", hashes)
            ],
        }


def bill(lock: Path = LOCK) -> dict[str, Any]:
    """Returns the bill of materials; the same lock file gives the same one."""
    text = (ROOT / "gatewayfilter" / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'__version__ = "([^"]+)"', text)
    version = found[1] if found else "0"
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, lock.read_text(encoding='utf-8'))}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": "gatewayfilter",
                "name": "gatewayfilter",
                "version": version,
                "licenses": [{"license": {"id": "MIT"}}],
            }
        },
        "components": sorted(components(lock), key=lambda component: str(component["bom-ref"])),
    }


def main() -> int:
    """Prints it."""
    made = bill()
    if "--licences" in sys.argv[1:]:
        for component in made["components"]:
            print(f"{component['name']:28} {component['version']:16} {component['licenses'][0]['license']['name']}")
    else:
        print(json.dumps(made, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())

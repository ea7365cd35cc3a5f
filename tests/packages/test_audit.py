"""The audit of the locked packages against a copy of OSV's advisories."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

AUDIT = Path(__file__).parents[2] / "scripts/packages/audit.py"


def _record(
    events: list[dict[str, str]], versions: tuple[str, ...] = (), name: str = "Some.Package", **more: Any
) -> dict[str, Any]:
    ranges = [{"type": "ECOSYSTEM", "events": events}] if events else []
    affected = {"package": {"ecosystem": "PyPI", "name": name}, "ranges": ranges, "versions": list(versions)}
    return {"id": "PYSEC-1", "summary": "a\nfault", "affected": [affected], **more}


def _audit(folder: Path, *records: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    (folder / "some.lock").write_text("some-package==1.10.0 \\\n    --hash=sha256:" + "0" * 64 + "\n")
    with zipfile.ZipFile(folder / "all.zip", "w") as archive:
        for number, record in enumerate(records):
            archive.writestr(f"{number}.json", json.dumps(record))
    line = [sys.executable, str(AUDIT), str(folder / "all.zip"), "--lock", str(folder / "some.lock")]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def test_affected_versions_are_named_and_no_others(tmp_path: Path) -> None:
    introduced = {"introduced": "0"}
    hit = [
        _record([introduced]),
        _record([introduced, {"fixed": "1.10.1"}]),
        _record([introduced, {"last_affected": "1.10.0"}]),
        _record([{"fixed": "1.2"}, introduced, {"introduced": "1.9"}]),
        _record([], versions=("1.10.0",)),
        _record([{"introduced": "not a version"}]),
    ]
    missed = [
        _record([introduced, {"fixed": "1.10"}]),
        _record([introduced, {"last_affected": "1.9"}]),
        _record([{"introduced": "1.11"}]),
        _record([], versions=("1.1",)),
        _record([introduced], name="another"),
        _record([introduced], withdrawn="2026-01-01T00:00:00Z"),
    ]
    for number, record in enumerate([*hit, *missed]):
        record["id"] = f"PYSEC-{number}"
    done = _audit(tmp_path, *hit, *missed)
    assert done.returncode == 1
    assert [line.split()[2] for line in done.stdout.splitlines()] == [f"PYSEC-{number}" for number in range(len(hit))]
    assert "some-package 1.10.0  PYSEC-1  fixed in: 1.10.1  a fault" in done.stdout
    assert "1 packages compared with 12 advisories: 6 hits" in done.stderr


@pytest.mark.parametrize("records", [0, 1])
def test_no_hits(tmp_path: Path, records: int) -> None:
    done = _audit(tmp_path, *[_record([], versions=("2",))] * records)
    assert (done.returncode, done.stdout) == (0 if records else 2, "")


def test_a_damaged_copy_is_told(tmp_path: Path) -> None:
    (tmp_path / "bad.zip").write_bytes(b"PK\x03\x04")
    line = [sys.executable, str(AUDIT), str(tmp_path / "bad.zip")]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (done.returncode, "cannot be read" in done.stderr, "Traceback" in done.stderr) == (2, True, False)

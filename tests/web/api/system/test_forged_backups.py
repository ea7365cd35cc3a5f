"""Backups that were forged, sent to a running dashboard: each is refused with one sentence, and nothing is written."""

import io
import json
import stat
import zipfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from tests.web.web_fakes import Dashboard, dashboard

_REGULAR = stat.S_IFREG | 0o600
_LINK = stat.S_IFLNK | 0o777
FORGED = {
    "out of the folder": ("state/../../evil", b"x", _REGULAR),
    "out of the folder at once": ("../evil", b"x", _REGULAR),
    "absolute": ("/etc/evil", b"x", _REGULAR),
    "absolute below a part": ("state//etc/evil", b"x", _REGULAR),
    "backslashes": ("state\\..\\evil", b"x", _REGULAR),
    "a link": ("state/services.toml", b"/etc/passwd", _LINK),
    "a pipe": ("state/services.toml", b"", stat.S_IFIFO | 0o600),
    "the key of the authority": ("state/ca/mitmproxy-ca.pem", b"x", _REGULAR),
    "a bomb": ("state/services.toml", bytes(24 << 20), _REGULAR),
}
"""A further member: its name, content and mode."""


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    with dashboard(tmp_path_factory.mktemp("forged") / "state") as opened:
        yield opened


@pytest.fixture(scope="module")
def made(web: Dashboard) -> bytes:
    return web.client.post("/api/v1/backup", json={}).content


def forged(made: bytes, name: str, content: bytes, mode: int) -> bytes:
    """Returns a backup with a further member, of which its manifest tells."""
    members = {member: part.read(member) for part in [zipfile.ZipFile(io.BytesIO(made))] for member in part.namelist()}
    manifest = json.loads(members.pop("manifest.json"))
    manifest["members"][name] = {"bytes": len(content), "sha256": sha256(content).hexdigest()}
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, part in members.items():
            archive.writestr(member, part)
        info = zipfile.ZipInfo(name)
        info.filename, info.external_attr, info.compress_type = name, mode << 16, zipfile.ZIP_DEFLATED
        archive.writestr(info, content)
        archive.writestr("manifest.json", json.dumps(manifest))
    return written.getvalue()


def files_of(web: Dashboard) -> set[str]:
    """Returns every file beside and in the state folder, but those that a restore may leave."""
    folder: Path = web.services.settings.data_dir.parent
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.name not in {"restore.lock", "transfers"}}


@pytest.mark.parametrize("kind", FORGED)
def test_a_forged_member_is_refused(kind: str, made: bytes, web: Dashboard) -> None:
    before, content = files_of(web), forged(made, *FORGED[kind])
    for path in ("/api/v1/restore/preview", "/api/v1/restore"):
        answer = web.client.post(path, files={"file": ("x", content)})
        assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
        assert "no backup that can be used" in answer.json()["detail"]
    page = web.client.post("/backup/restore", data={"step": "restore"}, files={"file": ("x", content)})
    assert (page.status_code, "no backup that can be used" in page.text) == (422, True)
    assert files_of(web) == before


def test_a_member_that_stands_twice_is_refused(made: bytes, web: Dashboard) -> None:
    twice = io.BytesIO(made)
    with zipfile.ZipFile(twice, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("tables/manual_rules.jsonl", b"")
    answer = web.client.post("/api/v1/restore", files={"file": ("x", twice.getvalue())})
    assert (answer.status_code, "stands in it twice" in answer.json()["detail"]) == (422, True)


def test_the_same_without_a_forgery_is_taken(made: bytes, web: Dashboard) -> None:
    """The cases above fail for what they add alone."""
    content = forged(made, "state/services.toml", b"", _REGULAR)
    assert web.client.post("/api/v1/restore/preview", files={"file": ("x", content)}).status_code == 200

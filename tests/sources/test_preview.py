"""What a list would change: which of its entries are known, and which visited hosts it would block."""

from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from gatewayfilter.engine.snapshot.builder import SnapshotBuilder
from gatewayfilter.engine.snapshot.reader import Snapshot
from gatewayfilter.interfaces import Decide
from gatewayfilter.model import Action, ListAction, Reason, Request, Source, Verdict
from gatewayfilter.sources import ListFormat, SourceFile, preview
from gatewayfilter.sources.preview import Preview, Visited, preview_list
from gatewayfilter.urls import digest_of

BLOCK, ALLOW = ListAction.BLOCK, ListAction.ALLOW


@dataclass
class Now:
    """Blocks one host already."""

    blocked: str = ""

    def decide(self, request: Request) -> Verdict:
        action = Action.BLOCK if request.url.host == self.blocked else Action.ALLOW
        return Verdict(action, Reason.BLACKLIST if action is Action.BLOCK else Reason.UNKNOWN)


def now_blocking(host: str = "") -> Decide:
    return cast("Decide", Now(host))


def in_use(*keys: str, action: ListAction = BLOCK) -> Snapshot:
    builder = SnapshotBuilder()
    builder.add_keys(builder.add_source(Source("mine", action, "ads")), keys)
    return Snapshot.from_bytes(builder.build())


def source_file(folder: Path, text: str, kind: ListFormat = ListFormat.DOMAINS, action: ListAction = BLOCK) -> SourceFile:
    path = folder / "list"
    path.write_text(text)
    return SourceFile(Source("new", action, "ads"), path, kind)


THREE = "a.example\nb.example\nc.example\na.example\n"


@pytest.mark.parametrize("batch", [1, 2, 50_000])
def test_entries_that_a_list_with_the_same_meaning_has_are_known(
    batch: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preview, "_BATCH", batch)
    item = source_file(tmp_path, THREE)
    for snapshot, known in (
        (in_use(".a.example", ".c.example"), 2),
        (in_use(".z.example"), 0),
        (in_use(".a.example", action=ALLOW), 0),
    ):
        assert preview_list(item, snapshot, now_blocking(), []) == Preview(known, (), 0)
    digests = "".join(f"{digest_of(key).hex()}\n" for key in (".a.example", ".b.example"))
    hashed = source_file(tmp_path, digests, ListFormat.DIGESTS)
    assert preview_list(hashed, in_use(".b.example"), now_blocking(), []).known == 1
    rules = source_file(tmp_path, "||a.example^\n", ListFormat.ADBLOCK)
    assert preview_list(rules, in_use(".a.example"), now_blocking(), []).known is None


def test_hosts_that_would_be_blocked_come_by_their_visits(tmp_path: Path) -> None:
    item = source_file(tmp_path, THREE)
    visits = [
        ("no address at all", "document"),
        ("http://a.example/1", "document"),
        ("http://a.example/1", "document"),
        ("http://x.b.example/", "no type"),
        ("http://x.b.example/2", "image"),
        ("http://x.b.example/2", "image"),
        ("http://c.example/", "document"),
        ("http://fine.example/", "document"),
    ]
    found = preview_list(item, in_use(), now_blocking("c.example"), visits)
    assert found == Preview(0, (Visited("x.b.example", 3, ".b.example"), Visited("a.example", 2, ".a.example")), 8)
    assert preview_list(item, in_use(), now_blocking(), visits, most=1).visited == found.visited[:1]
    rules = source_file(tmp_path, "||a.example^$image\n||x.b.example^$image\n", ListFormat.ADBLOCK)
    shown = preview_list(rules, in_use(), now_blocking(), visits)
    assert (shown.known, [(visited.host, visited.requests) for visited in shown.visited]) == (None, [("x.b.example", 2)])

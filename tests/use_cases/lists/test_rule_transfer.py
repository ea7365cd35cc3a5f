import gzip
import io

import pytest

from gatewayfilter.errors import ListError
from gatewayfilter.model import EntryKind, ListAction, ManualRule
from gatewayfilter.store import Store
from gatewayfilter.use_cases.lists.list_writers import write_entries
from gatewayfilter.use_cases.lists.rule_editing import RuleValues
from gatewayfilter.use_cases.lists.rule_transfer import (
    ImportPreview,
    RejectedLine,
    RuleExport,
    exported_rules,
    import_rules,
    preview_import,
    read_rules,
    text_of,
)

TEXT = "a.example # why\n0.0.0.0 b.example\n@@||c.example^\n((\n"


def test_a_file_is_read_previewed_and_stored(store: Store) -> None:
    found = read_rules(TEXT, RuleValues(comment="from a file", group="mine", expires_at=4e9), "my.txt")
    assert found.rules == (
        ManualRule(0, ListAction.BLOCK, EntryKind.DOMAIN, ".a.example", "why", "mine", 4e9),
        ManualRule(0, ListAction.BLOCK, EntryKind.HOST, "b.example", "from a file", "mine", 4e9),
        ManualRule(0, ListAction.ALLOW, EntryKind.DOMAIN, ".c.example", "from a file", "mine", 4e9),
    )
    (rejected,) = found.rejected
    assert (rejected.line, rejected.text) == (4, "((")
    assert preview_import(store, found.rules) == ImportPreview(new=3, changed=0, same=0)
    assert store.lists.rules() == [], "a preview stores nothing"
    assert import_rules(store, found.rules) == 3
    others = read_rules("a.example # why\n0.0.0.0 b.example\nd.example", RuleValues(group="mine", expires_at=4e9), "my.txt")
    assert preview_import(store, [*others.rules, *others.rules]) == ImportPreview(new=1, changed=1, same=1)


def test_what_only_hosts_can_do_is_refused_for_pages() -> None:
    found = read_rules("a.example\nb.example/page", RuleValues(ListAction.SPLICE), "my.txt")
    assert [rule.pattern for rule in found.rules] == [".a.example"]
    assert found.rejected == (
        RejectedLine(0, "b.example/page", "only the connections of whole hosts can pass unread, not a url"),
    )


def test_a_file_without_a_rule_names_its_first_line() -> None:
    with pytest.raises(ListError, match=r"my\.txt holds no usable entry; line 2, '\(\('"):
        read_rules("# mine\n((\n", RuleValues(), "my.txt")


@pytest.mark.parametrize(
    "content", [TEXT.encode(), TEXT.encode("utf-8-sig"), TEXT.encode("utf-16"), gzip.compress(TEXT.encode(), mtime=0)]
)
def test_the_largest_file(content: bytes) -> None:
    assert text_of(io.BytesIO(content), "my.txt", len(gzip.decompress(content) if content[:1] == b"\x1f" else content))
    with pytest.raises(ListError, match=r"my\.txt is larger than 9 bytes"):
        text_of(io.BytesIO(content), "my.txt", 9)


@pytest.mark.parametrize(
    "content", [TEXT.encode(), TEXT.encode("utf-8-sig"), TEXT.encode("utf-16"), gzip.compress(TEXT.encode(), mtime=0)]
)
def test_text_of_any_usual_file(content: bytes) -> None:
    assert text_of(io.BytesIO(content), "my.txt") == TEXT


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"x" * 101, "larger than 100 bytes"),
        (gzip.compress(bytes(10_000_000), mtime=0), "larger than 100 bytes"),
        (gzip.compress(TEXT.encode(), mtime=0)[:-20], "damaged or cut off"),
        (b"\xff\x00\xfe", "not UTF-8 text: byte 0"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_sentence(content: bytes, why: str) -> None:
    with pytest.raises(ListError, match=why):
        text_of(io.BytesIO(content), "my.txt", 100)


def test_an_export_leaves_out_what_does_not_count(store: Store) -> None:
    for pattern, group, expires_at, enabled, action in [
        (".a.example", "", None, True, ListAction.BLOCK),
        (".b.example", "kids", None, True, ListAction.BLOCK),
        (".c.example", "", 5.0, True, ListAction.BLOCK),
        (".d.example", "", None, False, ListAction.BLOCK),
        (".e.example", "", None, True, ListAction.ALLOW),
    ]:
        store.lists.add_rule(action, EntryKind.DOMAIN, pattern, group=group, expires_at=expires_at, enabled=enabled)

    def names(wanted: RuleExport) -> str:
        return "".join(rule.pattern[1] for rule in exported_rules(store, wanted, 10.0))

    assert names(RuleExport()) == "abde"
    assert names(RuleExport("hosts")) == "ab"
    assert names(RuleExport("adblock")) == "abe"
    assert names(RuleExport("csv", ListAction.ALLOW)) == "e"
    assert names(RuleExport("json", group="kids")) == "b"
    lines, _ = write_entries(exported_rules(store, RuleExport(), 10.0), "json")
    assert preview_import(store, read_rules("\n".join(lines), RuleValues(), "own").rules) == ImportPreview(0, 0, 4)


class Pipe(io.BytesIO):
    """A file that cannot be searched."""

    def seekable(self) -> bool:
        return False


@pytest.mark.parametrize("kind", [io.BytesIO, Pipe])
def test_the_largest_text(kind: type[io.BytesIO]) -> None:
    assert text_of(kind(b"a" * 20), "list", 20) == "a" * 20
    with pytest.raises(ListError, match=r"^list is larger than 20 bytes; add it as a source instead$"):
        text_of(kind(b"a" * 21), "list", 20)
    with pytest.raises(ListError, match=r"^list is not UTF-8 text: byte 2$"):
        text_of(kind(b"ab\xff"), "list", 20)


@pytest.mark.parametrize(("length", "fits"), [(20, True), (21, False)])
def test_the_largest_text_that_was_compressed(length: int, *, fits: bool) -> None:
    packed = gzip.compress(b"a" * length)
    if fits:
        assert text_of(io.BytesIO(packed), "list", 20) == "a" * 20
    else:
        with pytest.raises(ListError, match="larger than 20 bytes"):
            text_of(io.BytesIO(packed), "list", 20)
    with pytest.raises(ListError, match=r"^list is damaged or cut off$"):
        text_of(io.BytesIO(packed[:-4]), "list", 20)

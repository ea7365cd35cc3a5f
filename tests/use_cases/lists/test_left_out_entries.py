"""Entries that the format of another program has no way to say, each with the reason; files of rules to download and to send."""

import pytest

from gatewayfilter.errors import ListError
from gatewayfilter.model import EntryKind, LearnedEntry, ListAction, ManualRule
from gatewayfilter.store import Store
from gatewayfilter.use_cases.lists import rule_transfer
from gatewayfilter.use_cases.lists.list_writers import FORMATS, left_out, write_entries
from gatewayfilter.use_cases.lists.rule_editing import RuleValues
from gatewayfilter.use_cases.lists.rule_transfer import (
    RuleExport,
    exported_file,
    exported_rules,
    read_small_file,
)

BLOCK, ALLOW, SPLICE = ListAction.BLOCK, ListAction.ALLOW, ListAction.SPLICE
NOW = 1_800_000_000.0


def rule(kind: EntryKind, pattern: str, action: ListAction = BLOCK, scope: str = "") -> ManualRule:
    return ManualRule(0, action, kind, pattern, scope=scope)


@pytest.mark.parametrize(
    ("entry", "file_format", "reason"),
    [
        (rule(EntryKind.HOST, "a.example", ALLOW), "hosts", "hosts has no rules that allow"),
        (rule(EntryKind.HOST, "a.example", SPLICE), "adblock", "adblock has no rules that leave connections unread"),
        (rule(EntryKind.HOST, "a.example"), "domains", "domains has no hosts without the names below them"),
        (rule(EntryKind.HOST, "192.0.2.1"), "hosts", "hosts has no addresses"),
        (rule(EntryKind.URL, "a.example/x"), "dnsmasq", "dnsmasq has no pages"),
        (rule(EntryKind.PREFIX, "a.example/x/*"), "hosts", "hosts has no paths and ports"),
        (rule(EntryKind.WILDCARD, "*.a.example"), "rpz", "rpz has no patterns"),
        (rule(EntryKind.REGEX, "ads?"), "hosts", "hosts has no regular expressions"),
        (rule(EntryKind.DOMAIN, ".a.example", scope="client:tablet"), "hosts", "it holds for client:tablet alone"),
        (rule(EntryKind.DOMAIN, f".{'a.' * 123}example"), "rpz", "the name is too long for rpz"),
    ],
)
def test_what_a_format_has_no_way_to_say(entry: ManualRule, file_format: str, reason: str) -> None:
    kept = rule(EntryKind.DOMAIN, ".kept.example")
    ((found, why),) = left_out([kept, entry, kept], file_format)
    assert found is entry
    assert why.startswith(reason)
    assert write_entries([kept, entry], file_format)[1] == 1


@pytest.mark.parametrize("file_format", ["json", "csv"])
def test_complete_formats_leave_nothing_out(file_format: str) -> None:
    assert list(left_out([rule(EntryKind.REGEX, "x", SPLICE, "group:kids")], file_format)) == []


def test_a_name_is_written_with_those_below_it_while_that_fits() -> None:
    longest = f"{'a.' * 122}example"
    assert len(longest) == 251
    assert len([line for line in write_entries([rule(EntryKind.DOMAIN, f".{longest}")], "rpz")[0] if "CNAME" in line]) == 2
    assert write_entries([rule(EntryKind.DOMAIN, f".b{longest}")], "rpz")[1] == 1


def test_rules_are_downloaded_as_a_file(store: Store) -> None:
    store.lists.add_rule(BLOCK, EntryKind.DOMAIN, ".a.example")
    store.lists.add_rule(ALLOW, EntryKind.DOMAIN, ".b.example")
    found = exported_file(store, "hosts", None, None, NOW)
    assert (found.name, found.media_type, found.text) == ("rules.txt", "text/plain; charset=utf-8", "0.0.0.0 a.example\n")
    assert exported_file(store, "csv", None, None, NOW).name == "rules.csv"
    assert exported_file(store, "csv", None, None, NOW).media_type == "text/csv; charset=utf-8"
    found = exported_file(store, "json", ALLOW, None, NOW)
    assert (found.name, found.media_type) == ("rules.json", "application/json; charset=utf-8")
    assert (".b.example" in found.text, ".a.example" in found.text) == (True, False)
    assert exported_file(store, "json", None, "none", NOW).text == "[\n]\n"
    with pytest.raises(ListError, match=f"no format 'xml': there are {', '.join(FORMATS)}"):
        exported_file(store, "xml", None, None, NOW)


@pytest.mark.parametrize(
    ("expires_at", "written"),
    [
        (None, ""),
        (0.0, "1970-01-01T00:00:00+00:00"),
        (1.5, "1.5"),
        (3_999_999_999.0, "2096-10-02T07:06:39+00:00"),
        (4e9, "4000000000.0"),
        (-1.0, "-1.0"),
    ],
)
def test_when_an_entry_ends_in_csv(expires_at: float | None, written: str) -> None:
    entry = ManualRule(0, BLOCK, EntryKind.DOMAIN, ".a.example", "why, so", "mine", expires_at)
    assert write_entries([entry], "csv")[0][1] == f'block,domain,.a.example,mine,yes,{written},"why, so",'


def test_what_was_learned_is_written_with_its_reason_until_it_expires(store: Store) -> None:
    for host, until in (("a.example", NOW + 9), ("b.example", NOW)):
        store.lists.put_learned([LearnedEntry(f"{host}/x", BLOCK, "ads", f"http://{host}/x", "banner", NOW - 9, until)])
    (found,) = exported_rules(store, RuleExport(learned=True), NOW)
    assert (found.pattern, found.kind, found.action, found.comment) == ("a.example/x", EntryKind.URL, BLOCK, "ads: banner")
    assert (found.expires_at, found.group, found.rule_id) == (NOW + 9, "", 0)


def test_a_file_for_a_small_process_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_transfer, "LARGEST_SMALL_FILE", 12)
    assert [one.pattern for one in read_small_file("a.example   ", RuleValues()).rules] == [".a.example"]
    with pytest.raises(ListError, match=r"mine\.txt is longer than 12 characters"):
        read_small_file("a.example    ", RuleValues(), name="mine.txt")


def test_what_ends_now_is_written_no_more(store: Store) -> None:
    for host, until in (("a.example", NOW), ("b.example", NOW + 0.5), ("c.example", None)):
        store.lists.add_rule(BLOCK, EntryKind.HOST, host, expires_at=until)
    assert [one.pattern for one in exported_rules(store, RuleExport(), NOW)] == ["b.example", "c.example"]

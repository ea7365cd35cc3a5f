"""What a new source is called, which category and format it gets, and which lists a purpose has."""

from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.errors import SourceError
from gatewayfilter.model import ListAction
from gatewayfilter.sources.catalog import Bundle, CatalogEntry, choose_lists
from gatewayfilter.sources.categories import Categories, Category
from gatewayfilter.sources.formats.list_format import ListFormat
from gatewayfilter.sources.new_source import NewSource
from gatewayfilter.sources.source_naming import name_for, suggestion
from gatewayfilter.sources.subscription import Definition
from tests.case_tables import all_cases

BLOCK, ALLOW = ListAction.BLOCK, ListAction.ALLOW
CATEGORIES = Categories(
    (
        Category("ads", "Ads", "广告", "", BLOCK, ("adservers", "tracking")),
        Category("gambling", "Gambling", "赌博", "", BLOCK, ("casino",)),
        Category("bank", "Banks", "银行", "", ALLOW, ("banks",)),
    )
)


def entry(name: str, **more: Any) -> CatalogEntry:
    texts = {"title": name, "address": f"https://lists.test/{name}.txt", "licence": "", "homepage": "", "category": "ads"}
    return CatalogEntry(name, list_format=ListFormat.HOSTS, description="", description_zh="", **(texts | more))


CATALOG = {name: entry(name, default=name != "third", interval_h=6.0) for name in ("first", "second", "third")}


@all_cases(
    ("address", "name"),
    [
        ("https://lists.test/gambling/domains", "gambling"),
        ("/srv/lists/gambling/urls", "gambling"),
        ("domains", "domains"),
        ("https://lists.test/Ads.Hosts.txt", "ads"),
        ("https://lists.test/My%20List!.txt", "my-20list"),
        ("C:\\lists\\bad hosts.txt", "bad-hosts"),
        ("https://lists.test/" + "a" * 50, "a" * 40),
        ("/srv/名单.txt", "list"),
        ("https://lists.test/ads.txt?raw=1#top", "ads"),
        ("https://lists.test/get?list=ads.txt", "list-ads"),
        ("/srv/a?b/bad.txt", "bad"),
    ],
)
def test_a_source_is_named_after_the_end_of_its_address(address: str, name: str) -> None:
    assert name_for(address) == name


def test_a_misspelt_name_gets_the_nearest_one() -> None:
    assert suggestion("secnd", ["first", "second"]) == "; did you mean 'second'?"
    assert suggestion("something else", ["first", "second"]) == ""


@all_cases(
    ("address", "category"),
    [
        ("https://lists.test/gambling/domains", "gambling"),
        ("/srv/blacklists/gambling/domains", "gambling"),
        ("/gambling/a/b/domains", "other"),  # only the last three parts count
        ("https://lists.test/ads/casino.txt", "gambling"),  # the last of them first
        ("https://lists.test/Casino-Sites.hosts.txt?x=ads", "gambling"),
        ("https://lists.test/banks.txt", "bank"),
        ("https://lists.test/banks-phishing.txt", "other"),
        ("https://lists.test/bank-adservers.txt", "ads"),
        ("nothing.txt", "other"),
    ],
)
def test_the_category_is_guessed_from_the_address(address: str, category: str) -> None:
    assert CATEGORIES.guess(address) == category


def test_a_category_is_found_by_its_alias_and_an_unknown_one_blocks() -> None:
    assert CATEGORIES.get("banks").category_id == "bank"
    assert CATEGORIES.get("mine") == Category("mine", "mine", "mine", "", BLOCK)
    assert ("bank" in CATEGORIES, "banks" in CATEGORIES) == (True, False)
    assert [category.category_id for category in CATEGORIES] == ["ads", "gambling", "bank"]


def test_the_lists_for_a_purpose() -> None:
    bundles = {"home": Bundle("home", "Home", "家", "", "", ("third", "first"))}
    assert choose_lists(CATALOG, bundles) == ()
    assert choose_lists(CATALOG, bundles, defaults=True) == ("first", "second")
    assert choose_lists(CATALOG, bundles, "home") == ("third", "first")
    assert choose_lists(CATALOG, bundles, "home", defaults=True, leave_out={"second"}) == ("first", "third")
    with pytest.raises(SourceError, match="no lists for 'school'; there are home"):
        choose_lists(CATALOG, bundles, "school")


def test_what_was_left_out_is_completed(tmp_path: Path) -> None:
    known = NewSource("first").definition(CATALOG, CATEGORIES, 7.0)
    address = "https://lists.test/first.txt"
    assert known == Definition("first", address, ListFormat.HOSTS, "ads", BLOCK, 6.0, added_at=7.0)
    chosen = NewSource("first", "mine", ListFormat.URLS, "bank", BLOCK, 1.0).definition(CATALOG, CATEGORIES, 7.0)
    assert chosen == Definition("mine", address, ListFormat.URLS, "bank", BLOCK, 1.0, added_at=7.0)
    foreign = NewSource("HTTPS://lists.test/banks.txt").definition(CATALOG, CATEGORIES, 7.0)
    assert foreign == Definition("banks", "HTTPS://lists.test/banks.txt", None, "bank", ALLOW, 0.0, added_at=7.0)
    path = tmp_path / "casino.txt"
    path.touch()
    assert NewSource(str(path)).definition(CATALOG, CATEGORIES, 7.0).address == str(path)


@all_cases(
    ("given", "why"),
    [
        (NewSource("ftp://lists.test/a.txt"), "is no http"),
        (NewSource("secnd"), "no file and no list of the catalogue; did you mean 'second'"),
        (NewSource("first", "Mine"), "is no name for a source"),
        (NewSource("first", "a" * 41), "is no name for a source"),
        (NewSource("first", "starter-ads"), "begin with 'starter-'"),
        (NewSource("first", category="Ads!"), "is no name for a category"),
        (NewSource("first", category="a" * 41), "is no name for a category"),
    ],
)
def test_what_cannot_be_added_is_refused_with_the_reason(given: NewSource, why: str) -> None:
    with pytest.raises(SourceError, match=why):
        given.definition(CATALOG, CATEGORIES, 7.0)
    longest = NewSource("first", "a" * 40, category="b" * 40).definition(CATALOG, CATEGORIES, 7.0)
    assert (longest.name, longest.category, longest.action) == ("a" * 40, "b" * 40, BLOCK)

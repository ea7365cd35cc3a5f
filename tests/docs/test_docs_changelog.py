"""The form of CHANGELOG.md: Keep a Changelog, one line an item, and the version of the package."""

import re
from datetime import date
from itertools import pairwise

from gatewayfilter import __version__
from tests.docs.markdown_pages import PAGES

RELEASE = re.compile(r"## \[(\d+)\.(\d+)\.(\d+)\] - (\d{4}-\d\d-\d\d)")
KINDS = {"Security", "Changed", "Added", "Deprecated", "Removed", "Fixed"}
LINES = PAGES["CHANGELOG.md"].text.splitlines()
HEADINGS = [line for line in LINES if line.startswith("## ")]


def releases() -> list[tuple[tuple[int, int, int], date]]:
    found = []
    for heading in HEADINGS[1:]:
        match = RELEASE.fullmatch(heading)
        assert match is not None, heading
        found.append(((int(match[1]), int(match[2]), int(match[3])), date.fromisoformat(match[4])))
    return found


def test_what_is_not_released_comes_first_and_releases_from_new_to_old() -> None:
    assert HEADINGS[0] == "## [Unreleased]"
    assert releases()
    for (version, day), (older, earlier) in pairwise(releases()):
        assert version > older
        assert day >= earlier


def test_each_item_is_one_line_below_a_kind_of_change() -> None:
    body = LINES[LINES.index(HEADINGS[0]) :]
    odd = [line for line in body if line and not re.match(r"## \[|### |- \S.*[.)]$", line)]
    assert odd == []
    assert {line.removeprefix("### ") for line in body if line.startswith("### ")} <= KINDS


def test_each_release_has_a_kind_once_and_something_below_it() -> None:
    text = "\n".join(LINES[LINES.index(HEADINGS[0]) :])
    for release in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        kinds = re.findall(r"^### (.+)$", release, re.MULTILINE)
        assert len(kinds) == len(set(kinds))
        assert re.search(r"### .+\n(?!- )", release) is None


def test_the_package_has_the_newest_version_or_one_on_the_way_to_the_next() -> None:
    match = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)(\.dev\d+)?", __version__)
    assert match is not None
    version = (int(match[1]), int(match[2]), int(match[3]))
    newest, _ = releases()[0]
    assert version > newest if match[4] else version == newest

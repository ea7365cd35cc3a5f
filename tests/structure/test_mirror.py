"""Tests lie where what they test lies, and no two files have one name."""

from collections import Counter

from tests.structure.source_tree import PACKAGE, ROOT

TESTS = ROOT / "tests"
ACROSS = {"docs", "e2e", "fuzz", "netns", "packages", "security", "structure"}
"""Folders of tests that cross the whole package, or look at the tree itself."""


def test_folders_of_tests_mirror_packages() -> None:
    """A folder whose package has gone, or was renamed, would keep tests that are looked for elsewhere."""
    folders = {path.parent.relative_to(TESTS) for path in TESTS.rglob("test_*.py")} - {TESTS.relative_to(TESTS)}
    assert [
        folder for folder in sorted(folders) if folder.parts[0] not in ACROSS and not (PACKAGE / folder / "__init__.py").is_file()
    ] == []


def test_names_of_test_files_are_unique() -> None:
    names = Counter(path.name for path in TESTS.rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []

"""The files that a run by marks passes over, and where marks have to stand so that they are seen."""

from pathlib import Path

import pytest

from tests.marked_files import MARK, MarkedFiles

TESTS = Path(__file__).parents[1]
SLOW = "(real or slow) and not services and not packages"
QUICK = "not real and not slow and not services and not packages"


@pytest.mark.parametrize(
    ("expression", "marks", "selected"),
    [
        (SLOW, (), False),
        (SLOW, ("slow",), True),
        (SLOW, ("services",), False),
        (SLOW, ("services", "real"), True),  # perhaps not of the same test
        (QUICK, (), True),
        (QUICK, ("slow", "packages"), True),
        ("services", ("slow", "real"), False),
        ("services", ("services",), True),
        ("services and asyncio", (), True),  # a mark that need not be written
        ("", (), True),
    ],
)
@pytest.mark.parametrize("name", ["test_it.py", "conftest.py"])
def test_a_file_is_read_where_its_marks_may_be_selected(
    expression: str, marks: tuple[str, ...], name: str, tmp_path: Path, *, selected: bool
) -> None:
    (tmp_path / name).write_text("".join(f"@pytest.mark.{mark}\n" for mark in marks), encoding="utf-8")
    assert MarkedFiles(expression).may_select_of(tmp_path / "test_it.py") is selected


def test_marks_stand_in_test_files_and_conftest_alone() -> None:
    """A helper's would not be seen."""
    helpers = [path for path in TESTS.rglob("*.py") if not path.name.startswith("test_") and path.name != "conftest.py"]
    assert len(helpers) > 50
    assert [str(path) for path in helpers if MARK.search(path.read_text(encoding="utf-8"))] == []


def test_marks_above_a_folder_count() -> None:
    """`tests/store/conftest.py` has stores on PostgreSQL as parameters."""
    assert MarkedFiles("real").may_select_of(TESTS / "store" / "repositories" / "test_policy_store.py")

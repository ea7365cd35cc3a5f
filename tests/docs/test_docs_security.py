"""docs/security.md against the tests: each that it names exists, and each promise and finding names one."""

import ast
import re
from functools import cache

from tests.case_tables import all_cases
from tests.docs.markdown_pages import PAGES, ROOT

PAGE = PAGES["docs/security.md"]
TEST = re.compile(r"(tests/[\w/]+\.py)(?:::(\w+))?")
FINDINGS = ("C1", "C2", "H1", "H2", "H3", "M1", "M2", "M3", "M4", "M5", *(f"L{number}" for number in range(1, 10)), "R1", "R2")


def named_tests() -> list[tuple[str, str]]:
    """Files and functions that the page names, `""` for a whole file."""
    return sorted({(match[1], match[2] or "") for span in PAGE.spans if (match := TEST.fullmatch(span))})


def rows(heading: str) -> list[list[str]]:
    """The rows of the tables below a heading, without their heads."""
    part = PAGE.text.split(f"\n{heading}\n", 1)[1]
    part = re.split(r"^#", part, maxsplit=1, flags=re.MULTILINE)[0]
    found = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if line.startswith("| ")]
    return found[1:]


@cache
def defined_in(file: str) -> set[str]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@all_cases(("file", "function"), named_tests())
def test_a_test_that_is_named_exists(file: str, function: str) -> None:
    assert (ROOT / file).exists()
    assert not function or function in defined_in(file)


@all_cases(
    "heading",
    [
        "### Nothing passes unread by accident",
        "### Outsiders do not change the lists",
        "### No access to internal networks",
        "### The dashboard obeys only its accounts",
        "### Policies under odd and hostile input",
        "### Bounds",
        "## Findings",
    ],
)
def test_each_row_names_a_test(heading: str) -> None:
    assert [row[0] for row in rows(heading) if not TEST.search(row[-1])] == []
    assert len(rows(heading)) > 3


def test_each_finding_has_its_row() -> None:
    assert [row[0].partition(" ")[0] for row in rows("## Findings")] == list(FINDINGS)

"""docs/benchmarks.md: figures of the summary stand in one section below it, or on a page that the row links to.

Each section says what its tables count in and what they leave out.
"""

import re

from tests.case_tables import all_cases
from tests.docs.markdown_pages import PAGES

TEXT = PAGES["docs/benchmarks.md"].text
SUMMARY, *SECTIONS = TEXT.split("\n## ")
NUMBER = re.compile(r"(?<![\w.,])\d[\d,]*(?:\.\d+)?x?(?!\w)")
LINK = re.compile(r"\[[^\]]*\]\(([\w-]+\.md)[^)]*\)")
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in SUMMARY.splitlines() if line.startswith("| ")][1:]


TABLES = {
    part.partition("\n")[0]: part.partition("\n|")[0] for part in re.split(r"(?m)^##+ ", "\n## ".join(SECTIONS)) if "\n|" in part
}


def places(row: list[str]) -> list[str]:
    """Returns the texts in which the figures of a row may stand: each section below, and each page that it links to."""
    return [*SECTIONS, *(PAGES[f"docs/{name}"].text for cell in row for name in LINK.findall(cell))]


def missing(figures: list[str], text: str) -> list[str]:
    return [figure for figure in figures if not re.search(rf"(?<![\d.,]){re.escape(figure)}(?!\.?\d)", text)]


@all_cases("row", ROWS)
def test_the_figures_of_a_row_stand_together_below(row: list[str]) -> None:
    figures = [figure.rstrip(",") for figure in NUMBER.findall(LINK.sub("", row[3]))]
    assert figures
    assert min((missing(figures, text) for text in places(row)), key=len) == []


def test_the_summary_is_read() -> None:
    assert len(ROWS) >= 20
    assert missing(["99.87"], TEXT) == ["99.87"]


@all_cases("title", TABLES)
def test_a_section_says_before_its_tables_what_is_in_and_what_is_left_out(title: str) -> None:
    assert re.search(r"\bIn[:,]\s", TABLES[title]), title
    assert "Left out" in TABLES[title], title


def test_the_sections_with_tables_are_read() -> None:
    assert len(TABLES) >= 20

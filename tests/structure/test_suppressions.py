"""Suppressed findings: private members of other classes, and types that mypy is told to take as they are.

`proxy/mitm/` replaces parts of mitmproxy and is counted apart.
"""

import re

import pytest

from tests.structure.source_tree import PACKAGE, modules, name_of, text_of

MOST = 10
MITM = PACKAGE / "proxy" / "mitm"
SUPPRESSED = re.compile(r"#\s*type:\s*ignore|#\s*noqa:[^#\n]*\bSLF001\b")


def test_few_findings_are_suppressed() -> None:
    places = [
        f"{name_of(path)}:{number}"
        for path in modules()
        if MITM not in path.parents
        for number, line in enumerate(text_of(path).splitlines(), 1)
        if SUPPRESSED.search(line)
    ]
    assert len(places) <= MOST, places


@pytest.mark.parametrize(
    "line", ["a = b  # type: ignore[attr-defined]", "x._y()  # noqa: SLF001", "x._y  # noqa: N802, SLF001  why"]
)
def test_suppressions_are_recognised(line: str) -> None:
    assert SUPPRESSED.search(line)

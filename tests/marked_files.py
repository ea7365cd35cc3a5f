"""Which files can hold tests that a run's `-m` selects, by the marks that are written in them: no others need to be imported.

One file in eight has slow tests, and one in fifty needs servers.
"""

import re
from functools import cache
from itertools import combinations
from pathlib import Path

from _pytest.mark.expression import Expression

MARKS = ("packages", "real", "services", "slow")
MARK = re.compile(rf"\bmark\.({'|'.join(MARKS)})\b")
_NAME = re.compile(r"\w+")
_TESTS = Path(__file__).parent


class MarkedFiles:
    """The files of a run.

    Args:
        expression: as of `-m`. With other marks than `MARKS` in it, any file may hold tests of it.
    """

    def __init__(self, expression: str) -> None:
        self._any = not expression or not set(_NAME.findall(expression)) <= {*MARKS, "and", "or", "not"}
        if self._any:
            return
        condition = Expression.compile(expression)
        sets = [frozenset(marks) for count in range(len(MARKS) + 1) for marks in combinations(MARKS, count)]
        self._selected = [marks for marks in sets if condition.evaluate(lambda name, /, marks=marks, **_: name in marks)]

    def may_select_of(self, file: Path) -> bool:
        """Returns whether a test of this file may have marks that are selected."""
        return self._any or any(marks <= _marks_in(file) | _marks_above(file.parent) for marks in self._selected)


@cache
def files_of(expression: str) -> MarkedFiles:
    """Returns the files of a run."""
    return MarkedFiles(expression)


@cache
def _marks_in(file: Path) -> frozenset[str]:
    try:
        return frozenset(MARK.findall(file.read_text(encoding="utf-8")))
    except OSError:  # there is none; what cannot be read is met again where it is imported
        return frozenset()


@cache
def _marks_above(folder: Path) -> frozenset[str]:
    """Returns the marks in `conftest.py` of a folder and of those that it is in: parameters of fixtures may have marks."""
    found = _marks_in(folder / "conftest.py")
    return found if folder == _TESTS or _TESTS not in folder.parents else found | _marks_above(folder.parent)

"""Which tests a mutant of `make mutants` meets, and in which order."""

from collections.abc import Iterable, Mapping, Sequence

from scripts.called_functions import Place


def callers(noted: Mapping[str, tuple[float, Iterable[Sequence[object]]]]) -> dict[Place, list[str]]:
    """Returns, for each function, the tests that call it, the quickest first."""
    found: dict[Place, list[str]] = {}
    for test, (_, called) in sorted(noted.items(), key=lambda item: item[1][0]):
        for path, line in called:
            assert isinstance(path, str)
            assert isinstance(line, int)
            found.setdefault((path, line), []).append(test)
    return found


def in_turn(tests: Sequence[str], near: Sequence[str]) -> list[str]:
    """Returns tests in the order in which a mutant meets them.

    First those of files that name its module, file by file; then one of each other file, as what some tests of a file do not
    notice the others notice seldom; then the rest, file by file, so that fixtures of a file are made once.

    Args:
        tests: the quickest first.
        near: files that name the module.
    """
    files = list(dict.fromkeys([*near, *(test.partition("::")[0] for test in tests)]))
    firsts = {test.partition("::")[0]: test for test in reversed(tests)}

    def place(test: str) -> tuple[int, int]:
        file = test.partition("::")[0]
        return 0 if file in near else 1 if firsts[file] == test else 2, files.index(file)

    return sorted(tests, key=place)

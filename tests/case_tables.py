"""Tables of small cases that one test goes through: as a test of its own, each case would cost ten times its work."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any

import pytest

type Test = Callable[..., None]


def all_cases(names: str | Sequence[str], cases: Iterable[object]) -> Callable[[Test], Test]:
    """Returns what makes a test of a case into one test of all; use it as `pytest.mark.parametrize`, also several times.

    All cases are tried, and those that fail are named. They share the fixtures of the test, so it may have only those that no
    case changes.

    Args:
        names: of the test's parameters that differ; several in one text are separated by commas.
        cases: the value of the parameter, or of several a tuple.
    """
    given = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    table = list(cases)

    def made(test: Test) -> Test:
        assert not inspect.iscoroutinefunction(test), "a coroutine would not be awaited: take pytest.mark.parametrize"

        @wraps(test)
        def try_all(**fixtures: object) -> None:
            assert table
            failures: list[BaseException] = []
            for case in table:
                values: Any = (case,) if len(given) == 1 else case
                try:
                    test(**dict(zip(given, values, strict=True)), **fixtures)
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001  raised below, with all others
                    error.add_note(f"in the case {case!r}"[:500])
                    failures.append(error)
            if failures:
                raise BaseExceptionGroup(f"{len(failures)} of {len(table)} cases", failures)

        signature = inspect.signature(test)
        others = [parameter for name, parameter in signature.parameters.items() if name not in given]
        vars(try_all)["__signature__"] = signature.replace(parameters=others)
        return try_all

    return made

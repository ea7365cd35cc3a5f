"""Tests that go through a table of cases fail for each case that fails, and have the fixtures that are left."""

import inspect

import pytest

from tests.case_tables import all_cases


def test_all_cases_are_tried_and_each_failure_is_named() -> None:
    seen = []

    @all_cases(("number", "is_good"), [(1, True), (2, False), (3, True), (4, False)])
    def some_test(number: int, *, is_good: bool) -> None:
        seen.append(number)
        if number == 4:
            pytest.fail("no")
        assert is_good

    with pytest.raises(BaseExceptionGroup, match="2 of 4 cases") as found:
        some_test()
    assert seen == [1, 2, 3, 4]
    assert [error.__notes__ for error in found.value.exceptions] == [["in the case (2, False)"], ["in the case (4, False)"]]


def test_two_tables_are_crossed_and_fixtures_are_left() -> None:
    seen = []

    @all_cases("letter", "ab")
    @all_cases("number, sign", [(1, "+"), (2, "-")])
    def some_test(letter: str, number: int, sign: str, shared: str) -> None:
        seen.append(f"{letter}{sign}{number}{shared}")

    assert list(inspect.signature(some_test).parameters) == ["shared"]
    some_test(shared="!")
    assert seen == ["a+1!", "a-2!", "b+1!", "b-2!"]


def test_a_table_without_cases_is_no_success() -> None:
    @all_cases("number", [])
    def some_test(number: int) -> None:
        raise AssertionError(number)

    with pytest.raises(AssertionError):
        some_test()


def test_a_coroutine_is_refused_as_nobody_would_await_it() -> None:
    async def some_test(number: int) -> None:
        raise AssertionError(number)

    with pytest.raises(AssertionError, match="would not be awaited"):
        all_cases("number", [1])(some_test)  # type: ignore[arg-type]

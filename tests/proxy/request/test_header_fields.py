"""Header fields, compiled and in Python: both give the same."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.proxy.request import header_fields
from gatewayfilter.proxy.request.header_fields import (
    COMPILED,
    OWN,
    PASSED,
    Fields,
    has_name,
    plain_has_name,
    plain_holds_breaks,
    plain_read_roles,
    plain_value_of,
    plain_values_of,
    value_of,
    values_of,
)

ASKED = st.sampled_from(["host", "Host", "x", "X-\u00e9", b"host", b"CONTENT-TYPE", "content-type", ""])
NAMES = st.one_of(
    st.sampled_from([b"Host", b"hOST", b"host ", b"Content-Type", b"content-type", b"x", b"X-\xc3\xa9", b"@ost", b""]),
    st.binary(max_size=4),
)
VALUES = st.one_of(st.sampled_from([b"", b"x", b"a\rb", b"a\nb", b"\0", b"caf\xc3\xa9", b"\xff"]), st.binary(max_size=4))
FIELDS = st.lists(st.tuples(NAMES, VALUES), max_size=5).map(tuple)
ROLES = {b"Host": b"host", b"host": b"host", b"x": PASSED, b"Connection": b"connection"}
needs_twin = pytest.mark.skipif(COMPILED is None, reason="not compiled")


def role_of(name: bytes) -> bytes:
    lower = name.lower()
    return lower if lower in {b"host", b"connection", b"content-type"} else OWN if len(name) % 2 else PASSED


@needs_twin
@settings(max_examples=30)
@given(FIELDS, ASKED)
def test_both_find_the_same(fields: Fields, name: str | bytes) -> None:
    assert values_of is not plain_values_of
    assert values_of(fields, name) == plain_values_of(fields, name)
    assert value_of(fields, name, 5) == plain_value_of(fields, name, 5)
    assert has_name(fields, name) is plain_has_name(fields, name)


@needs_twin
@settings(max_examples=30)
@given(FIELDS)
def test_both_see_the_same_line_breaks(fields: Fields) -> None:
    assert header_fields.holds_breaks is not plain_holds_breaks
    assert header_fields.holds_breaks(fields) is plain_holds_breaks(fields)


@needs_twin
@settings(max_examples=30)
@given(st.lists(st.tuples(st.one_of(NAMES, st.sampled_from([b"Connection", b"connection"])), VALUES), max_size=6).map(tuple))
def test_both_read_the_same_roles(fields: Fields) -> None:
    assert header_fields.read_roles is not plain_read_roles
    assert header_fields.read_roles(fields, ROLES, role_of) == plain_read_roles(fields, ROLES, role_of)


@pytest.mark.parametrize("of", [values_of, plain_values_of])
def test_values_are_found_whatever_the_case_of_their_name(of: Callable[[Any, str], list[str]]) -> None:
    fields = ((b"Set-Cookie", b"a"), (b"set-cookies", b"b"), (b"SET-COOKIE", b"\xff"), (b"[et-cookie", b"c"))
    assert of(fields, "sEt-cookie") == ["a", "\udcff"]


@pytest.mark.parametrize("of", [header_fields.read_roles, plain_read_roles])
def test_repeated_fields_count_once_but_for_connection(of: Callable[..., Any]) -> None:
    fields = ((b"Host", b"a"), (b"host", b"b"), (b"Connection", b"x"), (b"Connection", b"x"), (b"x", b""), (b"abc", b"\xe9"))
    assert of(fields, ROLES, role_of) == ({b"host": "a", b"connection": "x, x"}, ["a", "b"], False)


@needs_twin
def test_names_that_are_asked_for_are_remembered_within_bounds() -> None:
    for number in range(1500):
        assert has_name(((b"x-%d" % number, b""),), f"X-{number}")
        assert not has_name(((b"y-%d" % number, b""),), f"X-{number}")


@needs_twin
@pytest.mark.parametrize(
    "read",
    [
        lambda field: values_of((field,), "host"),
        lambda field: value_of((field,), "host", None),
        lambda field: header_fields.holds_breaks(((b"host", field[0]),)),
        lambda field: header_fields.read_roles(((b"host", field[0]),), ROLES, role_of),
    ],
)
@pytest.mark.parametrize("field", [(None, b"x"), ("host", b"x"), (5, 5)])
def test_memory_of_what_is_no_field_is_not_read(read: Callable[[Any], object], field: Any) -> None:
    with pytest.raises(TypeError):
        read(field)

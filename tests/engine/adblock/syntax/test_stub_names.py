"""Values of `redirect=`: `gatewayfilter.engine.adblock.syntax.stub_names`."""

import pytest

from gatewayfilter.engine.adblock.syntax.stub_names import is_stub, read_stub
from gatewayfilter.errors import RuleError


def test_names_and_priorities_of_stubs() -> None:
    for value, stub in (
        ("noopjs", ("noopjs", 0)), ("noop.js", ("noopjs", 0)), ("none", ("", 0)), ("none:3", ("", 3)),
        ("noop.js:7", ("noopjs", 7)),
        ("noopjs:-1", ("noopjs", -1)), ("noopjs:999999999", ("noopjs", 999_999_999)), ("noopjs:0", ("noopjs", 0)),
        ("abp-resource:blank-js", ("noopjs", 0)), ("abp-resource:blank-js:5", ("noopjs", 5)),
    ):  # fmt: skip
        assert read_stub(value) == stub, value
        assert is_stub(value) is True, value


def test_what_is_no_stub() -> None:
    for value, name in (
        ("", ""), ("x", "x"), (":1", ""), ("noopjs:", "noopjs:"), ("noopjs:x", "noopjs:x"),
        ("noopjs:1000000000", "noopjs:1000000000"),
        ("noopjs:--1", "noopjs:--1"), ("noopjs:٣", "noopjs:٣"), ("x" * 101, "x" * 100), ("x:5", "x"),
    ):  # fmt: skip
        with pytest.raises(RuleError, match=f"^unknown stub '{name}'$"):
            read_stub(value)
        assert is_stub(value) is False, value

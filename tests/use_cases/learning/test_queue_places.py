"""Places in the crawl queue, and what of it is named."""

import pytest

from gatewayfilter.errors import ClassifyError, ConfigError
from gatewayfilter.interfaces import HoldKind
from gatewayfilter.use_cases.learning.crawl_queue import _one, _place


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", None),
        ("1_2.5_3", (1, 2.5, 3)),
        ("-1_-2.5_-3", (-1, -2.5, -3)),
        (f"{2**31 - 1}_1e17_{2**63 - 1}", (2**31 - 1, 1e17, 2**63 - 1)),
        ("1_2_3" + "0" * 10, (1, 2.0, 30_000_000_000)),
        ("1_2_".ljust(79, "0") + "3" + "x", (1, 2.0, 3)),
    ],
)
def test_a_place(text: str, place: tuple[int, float, int] | None) -> None:
    assert _place(text) == place


@pytest.mark.parametrize(
    "text",
    [
        "1",
        "1_2",
        "1_2_3_4",
        "a_2_3",
        "1_b_3",
        "1_2_c",
        "1_nan_3",
        "1_inf_3",
        f"{2**31}_1_1",
        f"-{2**31}_1_1",
        "1_1e18_1",
        f"1_1_{2**63}",
    ],
)
def test_no_place(text: str) -> None:
    with pytest.raises(ClassifyError, match="no place in the queue"):
        _place(text)


@pytest.mark.parametrize(
    ("task", "host", "held"),
    [
        ("", "", None),
        ("news", "", (HoldKind.TASK, "news")),
        ("a\0b", "", (HoldKind.TASK, "ab")),
        ("", "A.example", (HoldKind.HOST, "a.example")),
        ("", "http://a.example/b", (HoldKind.HOST, "a.example")),
        ("", "a.example:8080", (HoldKind.HOST, "a.example")),
        ("", " 2001:db8::1 ", (HoldKind.HOST, "2001:db8::1")),
        ("", "[2001:db8::1]", (HoldKind.HOST, "2001:db8::1")),
    ],
)
def test_what_is_held(task: str, host: str, held: tuple[HoldKind, str] | None) -> None:
    assert _one(task, host) == held


def test_one_thing_is_held_at_a_time() -> None:
    with pytest.raises(ConfigError, match="not both"):
        _one("news", "a.example")

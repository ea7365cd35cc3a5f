"""Streams of HTTP/2 at random: the fast path and the layers say the same, whatever comes."""

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from tests.proxy.layer_drivers import HOOKS
from tests.proxy.mitm.fastpath.http2.frame_script import OK, WINDOW, BothWays, Script, ask, raw
from tests.proxy.mitm.fastpath.http2.message_shapes import REQUESTS, RESPONSES
from tests.proxy.mitm.fastpath.test_fastpath_fuzz import DEEDS

NUMBERS = st.sampled_from([3, 3, 5, 5, 7, 9, 1, 2, 0])
FIELDS_ASKED = st.sampled_from([REQUESTS[name][0] for name in REQUESTS])
PATHS = st.builds(lambda deed, hook: ask(f"/{deed}-{hook}".encode()), st.sampled_from(sorted(DEEDS)), st.sampled_from(HOOKS))
FIELDS_ANSWERED = st.sampled_from([found[0] for found in RESPONSES.values()])
RAW = st.one_of(
    st.builds(raw, st.sampled_from([0, 3, 4, 6, 7, 8, 9, 5, 2, 99]), st.sampled_from([0, 1, 4, 5, 8]), NUMBERS, st.sampled_from(
        [b"", b"\0\0\0\1", b"\0\0\0\x08", WINDOW, b"12345678", b"\0\3\0\0\0\1", b"\0\4\0\0\0\1", b"x" * 20])),
    st.binary(max_size=20),
)  # fmt: skip
ACTS = st.one_of(
    *[st.tuples(st.just("ask"), st.none(), st.one_of(st.just(ask()), st.just(ask()), PATHS, FIELDS_ASKED), st.just(True))] * 3,
    st.tuples(st.just("ask"), NUMBERS, FIELDS_ASKED, st.booleans()),
    *[st.tuples(st.just("answer"), NUMBERS, st.one_of(st.just(OK[:2]), FIELDS_ANSWERED), st.booleans())] * 3,
    *[st.tuples(st.just("body"), NUMBERS, st.sampled_from([b"ok", b"", b"x" * 20_000]), st.booleans())] * 3,
    st.tuples(st.sampled_from(["client", "origin"]), RAW),
    st.tuples(st.just("client"), st.builds(lambda number: raw(8, 0, number, WINDOW), NUMBERS)),
    *[st.tuples(st.just("whole"), NUMBERS, st.sampled_from([b"ok", b"", b"x" * 9_000]))] * 3,
    st.tuples(st.just("asks"), st.integers(2, 3)),
    st.sampled_from([("release",), ("release",), ("client-ends",), ("origin-ends",), ("cut",)]),
)


def scripted(acts: list[tuple[Any, ...]]) -> Script:
    """Returns the script of what was drawn: `cut` lets what was said last come in two parts.

    Several frames come in one read only where none but the first can be wrong: h2 tells nothing of what came in a read before an
    error, and the fast path handles frame by frame, as if each came by itself.
    """
    script = Script.begun()
    following = 3
    for act, *what in acts:
        if act == "ask":
            number, fields, end = what
            script.says("client", script.client.head(following if number is None else number, fields, end=end))
            following += 2 * (number is None)
        elif act == "asks":
            numbers = range(following, following + 2 * what[0], 2)
            script.says("client", *(script.client.head(one, ask(b"/%d" % one)) for one in numbers))
            following = numbers.stop
        elif act == "answer":
            script.says("origin", script.origin.head(what[0], what[1], end=what[2]))
        elif act == "whole":
            script.says("origin", script.origin.head(what[0], OK[:2], end=False), script.origin.data(what[0], what[1], end=True))
        elif act == "body":
            script.says("origin", script.origin.data(what[0], what[1][:16_384], end=what[2]))
        elif act == "cut":
            kind, *last = script.steps.pop()
            data = last[0] if last else b""
            half = len(data) // 2 if isinstance(data, bytes) else 0
            script.steps += [(kind, data[:half]), (kind, data[half:])] if half else [(kind, *last)]  # type: ignore[index]
        else:
            script.steps.append((act, *what))
    return script


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_both_ways_are_one(both_ways: BothWays) -> None:
    short = 0

    @settings(max_examples=700, deadline=None, suppress_health_check=list(HealthCheck), phases=set(Phase) - {Phase.explain})
    @given(acts=st.lists(ACTS, min_size=3, max_size=16))
    def every(acts: list[tuple[Any, ...]]) -> None:
        nonlocal short
        script = scripted(acts)
        note(f"{script.steps}")
        short += both_ways(script)[1]

    every()
    assert short > 700  # else nothing was compared

"""Requests of HTTP/2: the fast path and the layers say the same of each, and the fast path takes the plain ones."""

import pytest

from gatewayfilter.proxy.mitm.fastpath.http2.request import _is_plain
from tests.case_tables import all_cases
from tests.proxy.mitm.fastpath.http2.frame_script import BothWays, Script
from tests.proxy.mitm.fastpath.http2.message_shapes import REQUESTS


@pytest.mark.parametrize("name", REQUESTS)
def test_any_request(name: str, both_ways: BothWays) -> None:
    fields, short = REQUESTS[name]
    script = Script.begun()
    _, before = both_ways(script)
    script.exchange(3, fields, body=b"" if name == "head" else b"ok")
    script.exchange(5)  # the tables of fields are as they would be
    (sent, *_), taken = both_ways(script)
    if short:
        assert taken - before == 4
        assert [frame[1] for frame in sent[0] if frame[0] == "head"] == [1, 3, 5]


@all_cases(
    ("fields", "plain"),
    [
        ((), True),
        (((b"accept", b"*/*"), (b"x-expect", b"1")), True),
        (((b"accept", b"*/*"), (b"expect", b"100-continue")), False),
        (((b"Accept", b"*/*"),), False),
    ],
)
def test_what_a_hook_may_add(fields: tuple[tuple[bytes, bytes], ...], *, plain: bool) -> None:
    assert _is_plain(fields) is plain

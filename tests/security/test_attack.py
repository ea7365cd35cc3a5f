"""A client that may send anything against a site that co-operates, for some seconds; `make attack` does it for longer.

What must never happen stands in tests/security/attack_run.py; a failure prints the seed and the case, as small as it still fails.
"""

import os
import random
from dataclasses import replace

import pytest
import trustme

from tests.netns.netns_network import why_not
from tests.security.attack_case import Case, Flight
from tests.security.attack_client import run_case
from tests.security.attack_generator import Generator, Site
from tests.security.attack_netns import attack_transparent
from tests.security.attack_run import Plan, attack_explicit
from tests.security.lenient_origin import END, MARKER, LenientOrigin
from tests.security.lenient_reading import is_blocked_host, is_blocked_path, read_head

SEED = int(os.environ.get("GATEWAYFILTER_TEST_SEED", "1" if "CI" in os.environ else "0")) or random.SystemRandom().randrange(
    1, 10**6
)
LEAST, LEAST_REACHED = 51, 11
"""How many cases are sent, and requests reach the origin, however slow the machine is just then."""


@pytest.mark.slow
@pytest.mark.timeout(500)
@pytest.mark.parametrize(("unknown", "seconds"), [("allow", 10), ("block", 6)])
def test_nothing_blocked_reaches_a_client_of_the_proxy(unknown: str, seconds: float) -> None:
    report = attack_explicit(Plan(SEED, seconds, unknown, least=LEAST, least_reached=LEAST_REACHED))
    assert report.findings == [], report.text()
    assert report.cases >= LEAST
    assert report.reached >= LEAST_REACHED


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.timeout(500)
@pytest.mark.parametrize(("unknown", "seconds"), [("allow", 10), ("block", 5)])
def test_nothing_blocked_reaches_a_client_of_the_gateway(unknown: str, seconds: float) -> None:
    if reason := why_not():
        pytest.skip(reason)
    report = attack_transparent(Plan(SEED, seconds, unknown, least=LEAST, least_reached=LEAST_REACHED))
    assert report.findings == [], report.text()
    assert report.cases >= LEAST
    assert report.reached >= LEAST_REACHED


def test_a_seed_always_draws_the_same_cases() -> None:
    site = Site("127.0.0.1", 80, 443)
    first, second = Generator(7, site), Generator(7, site)
    backwards = [second.case(number) for number in reversed(range(200))]
    assert [first.case(number) for number in range(200)] == backwards[::-1]
    assert len({case.family for case in backwards}) > 20


def test_a_case_becomes_smaller_and_can_be_printed() -> None:
    case = Case("x", (Flight(b"\r\nGET / HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n", (1, 5)), Flight(b"more")))
    smaller = list(case.simpler())
    assert replace(case, flights=(Flight(b"more"),)) in smaller
    assert replace(case, flights=(Flight(b"\r\nGET / HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n"), case.flights[1])) in smaller
    assert all(one != case for one in smaller)
    assert "cut at (1, 5)" in case.describe()
    assert case.flights[0].pieces() == [b"\r", b"\nGET", b" / HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n"]


async def test_without_a_filter_the_site_serves_what_is_blocked() -> None:
    """The attack could find nothing if the site did not co-operate."""
    async with LenientOrigin(trustme.CA()).running() as origin:
        for request, served in (
            (b"GET /secret/x HTTP/1.1\r\nHost: ok.test\r\n\r\n", MARKER),
            (b"GET / HTTP/1.1\r\nHost: blocked.test\r\n\r\n", MARKER),
            (b"\x00blocked.test", MARKER),
            (b"GET /ok/x HTTP/1.1\r\nHost: ok.test\r\n\r\n", b"fine"),
            (b"POST /ok/x HTTP/1.1\r\nHost: ok.test\r\nContent-Length: 17\r\n\r\nGET /secret/x H\r\n", b"fine"),
        ):
            outcome = await run_case(Case("x", (Flight(request, (1,)),)), ("127.0.0.1", origin.plain))
            assert served in outcome.received
            assert outcome.received.endswith(END)


@pytest.mark.parametrize(
    ("path", "blocked"),
    [
        (b"/secret/1", True),
        (b"//secret/1", True),
        (b"/ok/../secret/1", True),
        (b"/secret/../ok/1", True),
        (b"/secret;v=1/1", True),
        (rb"/\secret\1", True),
        (b"/%73ecret/1", True),
        (b"/secret/%2e%2e/ok", True),
        (b"/./secret/1?x", True),
        (b"/secret", False),
        (b"/ok/1", False),
        (b"/ok/secret/1", False),
        (b"/secret%2f1", True),
        (b"/ok/..%2Fsecret/1", True),
        (b"/secret%252f1", False),
        (b"/SECRET/1", False),
        (b"/ok?/secret/1", False),
    ],
)
def test_readings_of_a_path(path: bytes, *, blocked: bool) -> None:
    assert is_blocked_path(path) is blocked


@pytest.mark.parametrize(
    ("host", "blocked"),
    [
        (b"blocked.test", True),
        (b"Blocked.Test.", True),
        (b"a.blocked.test:80", True),
        (b"blo\xc2\xadcked.test", True),
        (b"\xef\xbd\x82locked.test", True),
        (b"blocked%2etest", True),
        (b"me@blocked.test", True),
        (b"blocked.test\xc2\xa0", True),
        (b"unblocked.test", False),
        (b"blocked.test.ok.test", False),
        (b"ok.test", False),
        (b"blocked.test@ok.test", False),
    ],
)
def test_readings_of_a_host(host: bytes, *, blocked: bool) -> None:
    assert is_blocked_host(host) is blocked


@pytest.mark.parametrize(
    ("fields", "rest", "size"),
    [
        (b"", b"abc", 0),
        (b"Content-Length: 2\r\n", b"abc", 2),
        (b"Content-Length: 4\r\n", b"abc", None),
        (b"Transfer-Encoding: chunked\r\n", b"2\r\nab\r\n0\r\n\r\nrest", 12),
        (b"Transfer-Encoding: chunked\r\n", b"2\r\nab\r\n", None),
        (b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", b"0\r\n\r\n", 0),
        (b"Transfer-Encoding: x\r\n", b"0\r\n\r\n", 0),
    ],
)
def test_a_body_ends_where_all_servers_agree(fields: bytes, rest: bytes, size: int | None) -> None:
    head = read_head(b"GET / HTTP/1.1\r\n" + fields + b"\r\n" + rest)
    assert head is not None
    assert head.body_size(rest) == size

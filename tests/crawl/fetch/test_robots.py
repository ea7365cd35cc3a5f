import asyncio
import contextlib
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from protego import Protego

from gatewayfilter.crawl.fetch import robots as robots_module
from gatewayfilter.crawl.fetch.fetcher import Fetcher
from gatewayfilter.crawl.fetch.robots import Robots, narrowed
from gatewayfilter.crawl.net.fetch_errors import RefusedError, UnreachableError
from gatewayfilter.interfaces import Page, Priority
from gatewayfilter.urls import Url, parse_url
from tests.crawl.crawl_origin import Origin, loopback_settings, reply

NOBODY = b"User-agent: *\nDisallow: /\n"
SELECTIVE = b"User-agent: other\nDisallow: /\n\nUser-agent: *\nDisallow: /private\nAllow: /private/page\n"


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


async def allows(robots: Robots, fetcher: Fetcher, url: str, priority: int = Priority.LINK) -> bool:
    try:
        await robots.check(parse_url(url), fetcher, priority=priority, patience_s=5.0)
    except RefusedError:
        return False
    return True


@pytest.mark.parametrize(
    ("answer", "path", "allowed"),
    [
        (reply(NOBODY), "/", False),
        (reply(SELECTIVE), "/", True),
        (reply(SELECTIVE), "/private/x", False),
        (reply(SELECTIVE), "/private/page", True),
        (reply(b"User-agent: GatewayFilter\nDisallow: /\n\nUser-agent: *\nAllow: /"), "/", False),
        (reply(b"", status="404 Not Found"), "/", True),
        (reply(NOBODY, status="403 Forbidden"), "/", True),
        (reply(b"\xff\xfe\x00 nonsense"), "/", True),
        (reply(NOBODY, content_type="image/png"), "/", False),
        (reply(b"#" * 600_000), "/", True),
    ],
)
async def test_answers(origin: Origin, fetcher: Fetcher, answer: bytes, path: str, *, allowed: bool) -> None:
    origin.answers["/robots.txt"] = answer
    assert await allows(Robots(loopback_settings()), fetcher, origin.url(path)) is allowed


async def test_redirects_are_followed(origin: Origin, fetcher: Fetcher) -> None:
    origin.answers["/robots.txt"] = reply(b"", "Location: /r.txt", status="301 Moved")
    origin.answers["/r.txt"] = reply(NOBODY)
    assert not await allows(Robots(loopback_settings()), fetcher, origin.url())


@pytest.mark.parametrize(
    ("rule", "priority", "allowed"),
    [
        ("always", Priority.VISIT, False),
        ("always", Priority.LINK, False),
        ("links", Priority.MANUAL, True),
        ("links", Priority.VISIT, True),
        ("links", Priority.RECHECK, True),
        ("links", Priority.LINK, False),
        ("never", Priority.LINK, True),
    ],
)
async def test_whom_it_is_asked_for(origin: Origin, fetcher: Fetcher, rule: str, priority: int, *, allowed: bool) -> None:
    origin.answers["/robots.txt"] = reply(NOBODY)
    assert await allows(Robots(loopback_settings(robots=rule)), fetcher, origin.url(), priority) is allowed


async def test_it_is_asked_once_a_day(origin: Origin, fetcher: Fetcher) -> None:
    origin.answers["/robots.txt"] = reply(SELECTIVE)
    clock = Clock()
    robots = Robots(loopback_settings(), clock)
    await asyncio.gather(*(allows(robots, fetcher, origin.url(f"/{number}")) for number in range(5)))
    assert origin.requests == ["/robots.txt"]
    clock.now += 86_400
    await allows(robots, fetcher, origin.url())
    assert len(origin.requests) == 2


async def test_a_failing_origin_is_left_alone_then_allowed(origin: Origin, fetcher: Fetcher) -> None:
    origin.answers["/robots.txt"] = reply(b"", status="500 Oops")
    clock = Clock()
    robots = Robots(loopback_settings(), clock)
    for _ in range(3):
        with pytest.raises(UnreachableError, match="status 500"):
            await allows(robots, fetcher, origin.url())
    assert len(origin.requests) == 1
    clock.now += 3
    with pytest.raises(UnreachableError):
        await allows(robots, fetcher, origin.url())
    assert len(origin.requests) == 2
    clock.now += 30 * 86_400
    assert await allows(robots, fetcher, origin.url())


async def test_an_origin_that_fails_is_left_alone_since_its_first_failure() -> None:
    clock, fetcher = Clock(), LengthFetcher()
    clock.now, fetcher.status = 1_700_000_000.0, 503
    robots = Robots(loopback_settings(), clock)
    url = "http://a.example/"
    for wait_s in (0.0, 86_400.0, robots_module.UNREACHABLE_S - 86_401.0):
        clock.now += wait_s
        with pytest.raises(UnreachableError, match="status 503"):
            await allows(robots, fetcher, url)  # type: ignore[arg-type]
    clock.now += 1.0
    assert await allows(robots, fetcher, url)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("priority", "urgent"), [(Priority.MANUAL, True), (Priority.VISIT, True), (Priority.VISIT + 1, False), (Priority.LINK, False)]
)
async def test_robots_txt_is_as_urgent_as_its_page(priority: int, *, urgent: bool) -> None:
    fetcher = LengthFetcher()
    robots = Robots(loopback_settings(robots="always"))
    assert not await allows(robots, fetcher, "http://a.example/", priority)  # type: ignore[arg-type]
    assert fetcher.asked == [
        {"urgent": urgent, "patience_s": 5.0, "max_bytes": robots_module.MAX_BYTES, "any_type": True},
    ]


async def test_a_failing_origin_is_asked_less_and_less_often() -> None:
    clock, fetcher, asked = Clock(), LengthFetcher(), list[float]()
    fetcher.status = 503
    robots = Robots(loopback_settings(), clock)
    origin = robots._origin("http://a.example")
    for _ in range(12):
        with pytest.raises(UnreachableError):
            await allows(robots, fetcher, "http://a.example/")  # type: ignore[arg-type]
        asked.append(origin.good_until - clock.now)
        clock.now = origin.good_until
    assert asked == [min(2.0**number, robots_module.RETRY_MAX_S) for number in range(1, 13)]
    fetcher.status = 200
    assert not await allows(robots, fetcher, "http://a.example/")  # type: ignore[arg-type]
    assert (origin.failures, origin.failing_since, origin.good_until - clock.now) == (0, None, robots_module.TTL_S)


async def test_what_it_said_counts_while_it_fails(origin: Origin, fetcher: Fetcher) -> None:
    origin.answers["/robots.txt"] = reply(NOBODY)
    clock = Clock()
    robots = Robots(loopback_settings(), clock)
    assert not await allows(robots, fetcher, origin.url())
    origin.answers["/robots.txt"] = reply(b"", status="503 Busy")
    clock.now += 86_400
    assert not await allows(robots, fetcher, origin.url())
    origin.answers["/robots.txt"] = reply(b"")
    clock.now += 3
    assert await allows(robots, fetcher, origin.url())


async def test_memory_is_bounded(fetcher: Fetcher, origin: Origin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(robots_module, "MAX_ORIGINS", 3)
    robots = Robots(loopback_settings())
    for number in range(1, 8):
        origin.answers["/robots.txt"] = reply(NOBODY)
        with contextlib.suppress(UnreachableError):  # nothing listens on the others
            await allows(robots, fetcher, origin.url(host=f"127.0.0.{number}"))
    assert len(robots) == 3


@pytest.mark.slow
async def test_long_files_of_many_origins_push_each_other_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(robots_module, "MAX_CHARACTERS", 1_000_000)
    body = b"User-agent: *\n" + b"Disallow: /x\n" * 23_000

    class AnyFetcher:
        async def fetch(self, url: Url, **_: object) -> Page:
            return Page(url.text, url.text, 200, {}, body)

    robots = Robots(loopback_settings())
    for number in range(8):
        assert not await allows(robots, AnyFetcher(), f"http://{number}.example/x")  # type: ignore[arg-type]
    assert len(robots) == 1_000_000 // len(body)
    assert robots._characters == len(robots) * len(body)


class LengthFetcher:
    """Answers with a robots.txt of so many characters, or with a status."""

    length = 40
    status = 200

    def __init__(self) -> None:
        self.asked: list[dict[str, object]] = []

    async def fetch(self, url: Url, **options: object) -> Page:
        self.asked.append(options)
        return Page(url.text, url.text, self.status, {}, b"User-agent: *\nDisallow: /".ljust(self.length))


async def test_what_is_kept_of_all_origins_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(robots_module, "MAX_CHARACTERS", 100)
    clock, fetcher = Clock(), LengthFetcher()
    robots = Robots(loopback_settings(), clock)

    async def visit(host: str, length: int, status: int = 200) -> tuple[list[str], int]:
        fetcher.length, fetcher.status = length, status
        await allows(robots, fetcher, f"http://{host}.example/x")  # type: ignore[arg-type]
        return [name.removeprefix("http://").removesuffix(".example") for name in robots._origins], robots._characters

    assert await visit("a", 40) == (["a"], 40)
    assert await visit("b", 60) == (["a", "b"], 100)
    assert await visit("c", 30) == (["b", "c"], 90)
    assert await visit("d", 60, 404) == (["b", "c", "d"], 90), "of one that does not exist nothing is kept"
    clock.now += robots_module.TTL_S
    assert await visit("b", 30) == (["c", "d", "b"], 60), "in place of what was kept of it"
    assert await visit("e", 400) == (["e"], 400), "one is always kept"
    assert await visit("f", 40) == (["f"], 40)


def test_many_agents_and_rules_are_read_in_linear_time() -> None:
    text = "".join(f"User-agent: bot{number}\n" for number in range(8000)) + "".join(
        f"Disallow: /{number}\n" for number in range(8000)
    )
    started = time.process_time()
    rules = Protego.parse(narrowed(text + "User-agent: *\nDisallow: /x", "GatewayFilter"))
    assert time.process_time() - started < 20  # quadratic: 64 million rules, minutes and gigabytes
    assert not rules.can_fetch("http://a.test/x", "GatewayFilter")
    assert rules.can_fetch("http://a.test/7", "GatewayFilter")


AGENTS = st.sampled_from(["*", "GatewayFilter", "gatewayfilter", "other", "another-bot", "x*", ""])
LINES = st.one_of(
    st.builds(
        "{}{}{}".format,
        st.sampled_from(["User-agent", "user-agent", "USERAGENT", "User agent"]),
        st.sampled_from([": ", ":", " : ", " "]),
        AGENTS,
    ),
    st.builds("{}: {}".format, st.sampled_from(["Allow", "Disallow"]), st.sampled_from(["/", "/a", "/a/b", "/*c", "/a$", ""])),
    st.sampled_from(["", "# comment", "Sitemap: http://a.test/s", "Crawl-delay: 5"]),
)


@settings(max_examples=30)
@given(st.lists(LINES, max_size=20), st.sampled_from(["/", "/a", "/a/b", "/xc"]))
def test_narrowing_changes_no_answer(lines: list[str], path: str) -> None:
    text = "\n".join(lines)
    url = f"http://a.test{path}"
    assert Protego.parse(narrowed(text, "GatewayFilter")).can_fetch(url, "GatewayFilter") == Protego.parse(text).can_fetch(
        url, "GatewayFilter"
    )


def test_rules_of_another_agent_stay_rules_of_an_agent() -> None:
    text = "User-Agent : Bad bot\nDisallow: /\n\nuser agent: GatewayFilter/2\nDisallow: /x\nUser-agent: *\n"
    assert narrowed(text, "GatewayFilter/2") == text.replace("User-Agent : Bad bot", "User-Agent: other-robot")


@pytest.mark.parametrize(("status", "has_rules"), [(199, False), (200, True), (299, True), (300, False), (404, False)])
async def test_which_answers_have_rules(status: int, *, has_rules: bool) -> None:
    url = "http://a.test/robots.txt"
    page = Page(url, url, status, {}, b"User-agent: *\nDisallow: /x\n")
    assert (await Robots(loopback_settings())._read(page) is not None) is has_rules

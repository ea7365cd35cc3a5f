"""What the breadth guard accepts, held against requests that it never tries."""

from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.engine.adblock.compiler import AdblockBuilder
from gatewayfilter.engine.adblock.matcher import AdblockMatcher
from gatewayfilter.model import Request, ResourceType
from gatewayfilter.urls import parse_url

HELD_OUT = (
    ("document", "https://en.wikipedia.org/wiki/Main_Page", ""),
    ("document", "http://news.ycombinator.com/item?id=8863", ""),
    ("document", "https://www.baidu.com/s?wd=tianqi", ""),
    ("document", "https://www.gov.uk/browse/driving", ""),
    ("document", "https://www.lemonde.fr/planete/article/2021/01/02/meteo_6065012_3244.html", ""),
    ("document", "https://www.zhihu.com/question/19550225", ""),
    ("document", "https://github.com/python/cpython/pulls", ""),
    ("document", "https://xn--fiqs8sirgfmh.xn--fiqs8s/", ""),
    ("document", "https://www.uni-heidelberg.de/de/studium", ""),
    ("script", "https://code.jquery.com/jquery-3.7.1.min.js", "https://www.rust-lang.org/"),
    ("script", "https://static.zhihu.com/heifetz/main.app.216a26f4.js", "https://www.zhihu.com/"),
    ("stylesheet", "https://www.debian.org/debian.css", "https://www.debian.org/"),
    ("stylesheet", "https://assets.nhs.uk/main-4.7.0.css", "https://www.nhs.uk/"),
    ("image", "https://upload.wikimedia.org/wikipedia/commons/4/4e/Moon.jpg", "https://de.wikipedia.org/"),
    ("image", "https://i.ytimg.com/vi/aqz-KE-bpKQ/hqdefault.jpg", "https://www.youtube.com/"),
    ("xmlhttprequest", "https://api.weather.gov/points/39.7456,-97.0892", "https://www.weather.gov/"),
    ("xmlhttprequest", "https://www.bilibili.com/x/web-interface/nav", "https://www.bilibili.com/"),
    ("subdocument", "https://player.vimeo.com/video/76979871", "https://www.sueddeutsche.de/"),
    ("media", "https://download.samplelib.com/mp4/sample-5s.mp4", "https://samplelib.com/"),
    ("document", "https://shop.rewe.de/c/obst-gemuese", ""),
)
"""Requests that the guard has never seen: only read as text here, nothing is asked for."""

REQUESTS = [Request(parse_url(url), parse_url(source) if source else None, ResourceType(kind)) for kind, url, source in HELD_OUT]
MOST_BLOCKED = 0.6

PIECES = [
    "a",
    "e",
    "s",
    "t",
    "ww",
    "www",
    "com",
    "cn",
    "org",
    "html",
    "js",
    "http",
    "https",
    "index",
    "/",
    "//",
    ".",
    ":",
    "?",
    "-",
    "*",
    "^",
    "|",
    "||",
]
SYMBOLS = [r".", r"\w", r"\d", r"[a-z]", r"[^x]", r"s?", r"\/", r":", r"+", r"*", r"^", r"$", r"a", r"|", r"(?!x)", r"com", r"\."]
PATTERNS = st.one_of(
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=5).map("".join),
    st.lists(st.sampled_from(SYMBOLS), max_size=6).map(lambda parts: f"/{''.join(parts)}/"),
    st.text("abcdefghijklmnopqrstuvwxyz./:-?=&*^|", min_size=1, max_size=4),
)
OPTIONS = st.lists(
    st.sampled_from(
        [
            "all",
            "document",
            "script",
            "image",
            "important",
            "~third-party",
            "third-party",
            "domain=com|org|cn",
            "domain=~x.com",
            "to=com",
            "denyallow=x.com",
            "method=get",
            "match-case",
            "~image",
            "domain=/./",
        ]
    ),
    max_size=3,
    unique=True,
)


@settings(max_examples=30, deadline=None)
@given(pattern=PATTERNS, options=OPTIONS)
def test_no_accepted_rule_blocks_most_of_what_the_guard_never_saw(pattern: str, options: list[str]) -> None:
    builder = AdblockBuilder()
    line = pattern + (f"${','.join(options)}" if options else "")
    if not builder.add_list(0, [line]).accepted:
        return
    matcher = AdblockMatcher(builder.build())
    blocked = sum(matcher.match(request) is not None for request in REQUESTS)
    assert blocked <= MOST_BLOCKED * len(REQUESTS), line

import base64
import random
import secrets
import uuid

from hypothesis import given
from hypothesis import strategies as st

from gatewayfilter.config import CrawlSettings
from gatewayfilter.crawl import may_crawl
from gatewayfilter.urls import parse_url
from tests.case_tables import all_cases
from tests.crawl.crawl_origin import loopback_settings

MAY = [
    "http://site.test/",
    "https://site.test/news/2024/05/how-to-reset-a-window.html",
    "http://site.test/how-to-fix-a-broken-window-in-twenty-minutes-2024-05-21",
    "http://site.test/?q=how+to+delete+a+file",
    "http://site.test/?keyword=casino&page=2",
    "http://site.test/code/key-facts",
    "http://site.test/Donaudampfschifffahrtsgesellschaft",
    "http://site.test/%E8%B5%8C%E5%8D%9A%E7%BD%91%E7%AB%99",
    "http://site.test/wiki/Honorificabilitudinitatibus",
    "http://site.test/presets/designer",
    "http://site.test/SomeVeryLongReadableFileName.html",
    "http://site.test/index.php?id=1234567890123",
    "http://site.test:443/",
    "https://site.test:80/",
]
MAY_NOT = [
    ("ws://site.test/", "ws"),
    ("http://site.test/logout", "logout"),
    ("http://site.test/user/signOut", "signout"),
    ("http://site.test/confirm-your-new-email-address", "confirm"),
    ("http://site.test/log-out-of-all-devices", "logout"),
    ("http://site.test/email/please-verify.php", "verify"),
    ("http://site.test/Log-Out.aspx", "logout"),
    ("http://site.test/account/%64elete", "delete"),
    ("http://site.test/a;jsessionid=1", "jsessionid"),
    ("http://site.test/newsletter/un/unsubscribe", "unsubscribe"),
    ("http://site.test/?action=delete", "delete"),
    ("http://site.test/?do=log_out", "logout"),
    ("http://site.test/?token=abc", "token"),
    ("http://site.test/?access_token=", "token"),
    ("http://site.test/?apiKey=1", "key"),
    ("http://site.test/?X-Amz-Signature=1", "signature"),
    ("http://site.test/?code=4711", "code"),
    ("http://site.test/?a=1&PHPSESSID=2", "phpsessid"),
    ("http://site.test/?a=1;b=2&otp=3", "otp"),
    ("http://site.test/d41d8cd98f00b204e9800998ecf8427e", "secret"),
    ("http://site.test/d/550e8400-e29b-41d4-a716-446655440000", "secret"),
    ("http://site.test/?id=12345678901234567890", "secret"),
    ("http://site.test/" + "a" * 4096, "longer"),
    ("http://site.test:8080/", "port 8080"),
    ("http://site.test:22/", "port 22"),
    ("http://127.0.0.1/", "public"),
    ("http://[::1]/", "public"),
    ("http://0x7f.1/", "public"),
    ("http://8.8.8.8:22/", "port 22"),
]


@all_cases("url", MAY)
def test_may_be_crawled(url: str) -> None:
    assert may_crawl(parse_url(url), CrawlSettings()) == ""


@all_cases(("url", "why"), MAY_NOT)
def test_may_not_be_crawled(url: str, why: str) -> None:
    assert why in may_crawl(parse_url(url), CrawlSettings()).lower()


@all_cases("url", ["http://127.0.0.1:8000/", "http://localhost:8000/", "http://site.test:8000/"])
def test_ports_of_allowed_networks_are_left_to_the_guard(url: str) -> None:
    assert may_crawl(parse_url(url), loopback_settings()) == ""


def test_addresses_outside_the_allowed_networks_stay_refused() -> None:
    assert may_crawl(parse_url("http://10.0.0.1/"), loopback_settings())
    assert may_crawl(parse_url("http://8.8.8.8:8000/"), loopback_settings())


def test_drawn_values_are_recognised() -> None:
    rng = random.Random(1)
    drawn = [rng.randbytes(24) for _ in range(500)]
    for made in (
        lambda raw: raw.hex(),
        lambda raw: base64.urlsafe_b64encode(raw).decode(),
        lambda raw: str(uuid.UUID(bytes=raw[:16])),
    ):
        refused = sum(bool(may_crawl(parse_url(f"http://site.test/?v={made(raw)}"), CrawlSettings())) for raw in drawn)
        assert refused >= 0.94 * len(drawn)


def test_secrets_of_the_standard_library_are_recognised() -> None:
    assert sum(bool(may_crawl(parse_url(f"http://a.test/{secrets.token_hex(16)}"), CrawlSettings())) for _ in range(100)) >= 90


@given(st.text(max_size=200))
def test_any_path_and_query_gets_an_answer(text: str) -> None:
    assert isinstance(may_crawl(parse_url(f"http://site.test/{text}"), CrawlSettings()), str)


@all_cases(
    ("path", "why"),
    [
        ("a" * 4_079, ""),
        ("a" * 4_080, "the URL is longer than 4096 characters"),
        ("my-account-delete", "the path has 'delete'"),
        ("how-to-never-delete", ""),  # a title: its first words alone count
        ("how-delete-works-here", "the path has 'delete'"),
        ("how-log-out-works", ""),
        ("?do=please+delete", "the query has 'delete'"),
        ("?q=please+delete+this", ""),
        (f"?{'x' * 41}-token=1", f"the query key {'x' * 40!r} has 'token'"),
        (f"?{'x' * 41}={'7' * 20}", f"the value of the query key {'x' * 40!r} looks like a secret"),
        ("7" * 19, ""),
        ("7" * 20, "looks like a secret"),
        (f"{'7' * 18}-7", ""),
        (f"{'7' * 19}-7", "looks like a secret"),
        ("-".join(["7" * 6] * 3 + ["777"]), "looks like a secret"),  # a separator in eight characters
        ("-".join(["7" * 5] * 3 + ["7777", "7"]), ""),
        ("aaaa1aaaa1aaaa1aaaaaaa", "looks like a secret"),  # six steps in 22 places
        ("aaaa1aaaa1aaaaaaaaaaa1", ""),
        ("aaaa1aaaa1aaaaaaaaa1", ""),  # five in 20
        ("aaA" * 6 + "aaaa", "looks like a secret"),
        ("aaA" * 5 + "aaaaaaa", ""),
        ("Aa" * 11, "looks like a secret"),
        ("aaaaaaaaaaaAAAAAAAAAAA", ""),
    ],
)
def test_how_much_of_a_url_is_looked_at(path: str, why: str) -> None:
    found = may_crawl(parse_url(f"http://site.test/{path}"), CrawlSettings())
    assert why in found
    assert bool(found) is bool(why)

import os
from dataclasses import replace

import pytest
import zstandard

from gatewayfilter.crawl.modules.failures import error_of, failure_of
from gatewayfilter.crawl.modules.messages import CrawlMessage, Failure, MessageCodec
from gatewayfilter.crawl.net.fetch_errors import BadAnswerError, HostBusyError, RefusedError, UnreachableError
from gatewayfilter.crawl.page_fetch import FetchedPage
from gatewayfilter.errors import FetchError, ForbiddenAddressError, UrlError
from gatewayfilter.interfaces import Channel, Lease, Page
from gatewayfilter.model import Classification, Evidence
from tests.case_tables import all_cases
from tests.crawl.modules.crawl_roads import KEY

LEASE = Lease("http://www.a.example/p", 10, 2, "token", 1_700_000_000.5, "news", 3)
HEADERS = {"content-type": "text/html", "set-cookie": "session=secret", "etag": '"1"', "authorization": "secret"}
PAGE = Page("http://www.a.example/p", "http://a.example/", 200, HEADERS, b"\x00\xffcasino", True, 12, True)
FETCHED = FetchedPage(PAGE, ("http://a.example/sitemap.xml",), rendered=True)
FOUND = Classification(
    "gambling", 42.0, 20.0, {"gambling": 42.0}, (Evidence("casino", "gambling", 9.0, "title", 1),), "T", "utf-8"
)
CODEC = MessageCodec(KEY, 100_000)
MESSAGES = [
    (Channel.JOBS, CrawlMessage(LEASE)),
    (Channel.PAGES, CrawlMessage(LEASE, FETCHED)),
    (Channel.RESULTS, CrawlMessage(LEASE, FETCHED, classification=FOUND, words="v1")),
    (Channel.RESULTS, CrawlMessage(LEASE, failure=Failure("busy", "not due", 2.5))),
]


@all_cases(("channel", "message"), MESSAGES)
def test_what_is_written_is_read(channel: Channel, message: CrawlMessage) -> None:
    letter = CODEC.letter(channel, message)
    assert (letter.channel, letter.key) == (channel, b"a.example")
    kept = {"content-type": "text/html", "etag": '"1"'}
    if message.fetched is not None:
        message = replace(message, fetched=replace(FETCHED, page=replace(PAGE, headers=kept)))
    assert CODEC.read(channel, letter.value) == message


def test_no_secret_of_a_page_is_in_a_message() -> None:
    value = CODEC.letter(*MESSAGES[2]).value
    assert b"secret" not in zstandard.ZstdDecompressor().decompress(value[17:])


@all_cases("channel", Channel)
def test_messages_of_others_are_refused(channel: Channel) -> None:
    value = CODEC.letter(Channel.PAGES, MESSAGES[1][1]).value
    forged = MessageCodec(bytes(32), 100_000).letter(channel, MESSAGES[1][1]).value
    broken = [b"", b"x", value[:17], value[:-1], value[:40] + b"\0" + value[41:], b"2" + value[1:], forged, b"1" * 5_000_000]
    for one in broken + ([value] if channel is not Channel.PAGES else []):
        with pytest.raises(ValueError, match="message"):
            CODEC.read(channel, one)


@all_cases("plain", [b"", b"\xff\xff\xff\xff", b"\0\0\0\2{}", b"\0\0\0\2[]", b'\0\0\0\x0c{"lease": {}}', bytes(3_000_000)])
def test_signed_messages_that_make_no_sense_are_refused(plain: bytes) -> None:
    for size in (True, False):
        payload = zstandard.ZstdCompressor(write_content_size=size).compress(plain)
        with pytest.raises(ValueError, match="cannot be read"):
            CODEC.read(Channel.JOBS, b"1" + CODEC._mac(Channel.JOBS, payload) + payload)


def test_a_page_that_is_too_long_compressed_is_cut() -> None:
    codec = MessageCodec(KEY, 100_000, most=20_000)
    page = replace(PAGE, body=os.urandom(90_000), truncated=False)
    letter = codec.letter(Channel.PAGES, CrawlMessage(LEASE, FetchedPage(page)))
    fetched = codec.read(Channel.PAGES, letter.value).fetched
    assert fetched is not None
    assert 10_000 < len(fetched.page.body) < len(letter.value) <= 20_000
    assert fetched.page.truncated
    assert page.body.startswith(fetched.page.body)


ERRORS = [
    HostBusyError("busy", 2.5),
    UnreachableError("away", 60.0),
    RefusedError("robots"),
    ForbiddenAddressError("private"),
    BadAnswerError("bomb"),
    UrlError("no URL"),
]


@all_cases("error", ERRORS)
def test_errors_travel(error: Exception) -> None:
    arrived = error_of(failure_of(error))
    assert type(arrived) is type(error)
    assert (str(arrived), getattr(arrived, "retry_after_s", 0)) == (str(error), getattr(error, "retry_after_s", 0))


def test_other_errors() -> None:
    assert failure_of(FetchError("odd")) == Failure("answer", "odd")
    assert failure_of(KeyError("what an origin wrote")) == Failure("crashed", "KeyError")
    assert error_of(Failure("crashed", "KeyError")) is None


def test_how_long_a_message_may_be() -> None:
    head = CODEC.letter(Channel.JOBS, CrawlMessage(LEASE)).value[:1]
    for more, reason in ((0, "forged"), (1, "too long")):
        with pytest.raises(ValueError, match=reason):
            CODEC.read(Channel.JOBS, head + bytes(CODEC._most - 1 + more))

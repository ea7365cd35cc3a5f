"""Which pages a parser reads and classifies, and what it sends on of the others and of failures."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.crawl.modules.messages import CrawlMessage
from gatewayfilter.crawl.modules.parse_module import ParseModule
from gatewayfilter.crawl.net.fetch_errors import HostBusyError
from gatewayfilter.crawl.page_fetch import FetchedPage
from gatewayfilter.errors import ClassifyError
from gatewayfilter.interfaces import Lease, Page
from gatewayfilter.telemetry import Counters

LEASE = Lease("http://a.example/", 10, 2, "token", 1_700_000_000.5)


class Parser:
    """The module over doubles, with the order in which a page is read and classified."""

    def __init__(self, thread: ThreadPoolExecutor, fault: Exception | None = None, *, at: str = "") -> None:
        self.steps: list[str] = []
        self.counters = Counters()
        self._fault, self._at = fault, at
        double: Any = self
        self.module = ParseModule(double, lambda: "v1", double, thread, self.counters)
        files: Any = SimpleNamespace(read=self._read)
        self.module._files = files

    def _step(self, name: str) -> None:
        self.steps.append(name)
        if self._fault is not None and self._at == name:
            raise self._fault

    async def _read(self, page: Page) -> None:
        assert page.body
        self._step("read")

    def classify_page(self, page: Page) -> str:
        self._step("classified")
        return f"of {page.url}"

    def read(self, _: object, value: Any) -> Any:
        return value

    def letter(self, _: object, message: CrawlMessage) -> Any:
        return message

    async def handle(self, page: Page) -> Any:
        value: Any = CrawlMessage(LEASE, FetchedPage(page))
        (found,) = await self.module.handle(value)
        assert self.counters.as_dict() == {"pages_parsed": 1}
        return found


@pytest.fixture
def thread() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as found:
        yield found


def page(status: int = 200, kind: str = "text/html", body: bytes = b"text") -> Page:
    return Page("http://a.example/", "http://a.example/", status, {"content-type": kind}, body)


@pytest.mark.parametrize(
    ("came", "classified"),
    [
        (page(), True),
        (page(299), True),
        (page(199), False),
        (page(300), False),
        (page(body=b""), False),
        (page(kind="image/png"), False),
        (page(kind="application/pdf"), True),
    ],
)
async def test_pages_are_read_first_and_then_classified(came: Page, thread: ThreadPoolExecutor, *, classified: bool) -> None:
    parser = Parser(thread)
    found = await parser.handle(came)
    assert parser.steps == (["read", "classified"] if classified else [])
    assert (found.classification, found.words) == (("of http://a.example/", "v1") if classified else (None, ""))
    assert (found.fetched.page, found.failure) == (came, None)


@pytest.mark.parametrize(
    ("fault", "at", "kind", "words"),
    [
        (HostBusyError("too many files", 2.5), "read", "busy", ""),
        (KeyError("odd"), "read", "crashed", ""),
        (KeyError("odd"), "classified", "crashed", ""),
        (ClassifyError("no text"), "classified", "", "v1"),
    ],
)
async def test_what_fails_is_sent_on_as_a_failure(
    fault: Exception, at: str, kind: str, words: str, thread: ThreadPoolExecutor
) -> None:
    found = await Parser(thread, fault, at=at).handle(page())
    assert (found.failure.kind if found.failure else "", found.words, found.classification) == (kind, words, None)
    assert (found.fetched is None) is bool(kind)


async def test_a_message_without_a_page_is_refused(thread: ThreadPoolExecutor) -> None:
    value: Any = CrawlMessage(LEASE)
    with pytest.raises(ValueError, match="no page"):
        await Parser(thread).module.handle(value)

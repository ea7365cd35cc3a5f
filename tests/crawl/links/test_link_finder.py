"""Which links of a page are followed beside those of its strategy, and in which order."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from gatewayfilter.crawl.links import link_finder
from gatewayfilter.crawl.links.link_finder import LinkFinder
from gatewayfilter.interfaces import Page
from gatewayfilter.model import Classification
from gatewayfilter.settings import CrawlSettings
from gatewayfilter.urls import Url, parse_url

PAGE = Page("http://a.test/", "http://a.test/x", 200, {"content-type": "text/html"}, b"x")
JUDGED = Classification("", 0.0, 20.0, charset="gbk")


def links_named(name: str) -> Any:
    def found(*given: object) -> list[Url]:
        assert PAGE in given or PAGE.final_url in given
        return [parse_url(f"http://{name}.test/")]

    return found


@pytest.mark.parametrize(
    ("classification", "near", "images", "ruled", "names"),
    [
        (JUDGED, True, True, True, ["out", "rule", "discovered", "picture"]),
        (JUDGED, True, False, False, ["out", "discovered"]),
        (JUDGED, False, True, False, ["discovered", "picture"]),
        (JUDGED, False, False, True, ["rule", "discovered"]),
        (None, True, True, True, ["rule", "discovered"]),
    ],
)
def test_what_is_followed(
    classification: Classification | None,
    names: list[str],
    monkeypatch: pytest.MonkeyPatch,
    *,
    near: bool,
    images: bool,
    ruled: bool,
) -> None:
    for function, name in (("out_links", "out"), ("rule_links", "rule"), ("page_pictures", "picture")):
        monkeypatch.setattr(link_finder, function, links_named(name))
    known = SimpleNamespace(is_near_duplicate=lambda _: near, knows_images=lambda: images)
    rules = SimpleNamespace(read=lambda _: object() if ruled else None)
    finder = LinkFinder(CrawlSettings(), cast("Any", rules), cast("Any", known))
    monkeypatch.setattr(finder, "_discovery", SimpleNamespace(links=links_named("discovered")))
    assert [link.host for link in finder.links(PAGE, classification, ())] == [f"{name}.test" for name in names]

"""Sitemaps and feeds: what they list, and what a hostile one can do."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayfilter.crawl.fetch.fetcher import Fetcher
from gatewayfilter.crawl.links import feeds, sitemap_discovery
from gatewayfilter.crawl.links.feeds import Feed, FeedKind, feed_of
from gatewayfilter.crawl.links.sitemap_discovery import FocusedDiscovery
from gatewayfilter.interfaces import Page
from gatewayfilter.model import Classification
from gatewayfilter.urls import parse_url
from tests.case_tables import all_cases
from tests.crawl.crawl_origin import Origin, loopback_settings, reply

SITE = "http://www.bad.test"
SITEMAP = (
    '<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
    "<url><loc>http://www.bad.test/a?x=1&amp;y=2</loc><lastmod>2024</lastmod></url>"
    '<url><loc> http://www.bad.test/b </loc><image:image xmlns:image="x"><image:loc>http://www.bad.test/p.png</image:loc></image:image>'
    "</url></urlset>"
)
INDEX = "<sitemapindex><sitemap><loc>http://www.bad.test/s1.xml.gz</loc></sitemap></sitemapindex>"
RSS = (
    '<rss version="2.0"><channel><title>News</title><link>http://www.bad.test/</link><image><link>http://www.bad.test/i</link></image>'
    "<item><title>One</title><link>http://www.bad.test/1</link></item><item><link><![CDATA[http://www.bad.test/2]]></link></item></channel></rss>"
)
RDF = (
    '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/">'
    "<channel><link>http://www.bad.test/</link></channel><item><link>http://www.bad.test/1</link></item></rdf:RDF>"
)
ATOM = (
    '<feed xmlns="http://www.w3.org/2005/Atom"><link href="/"/><entry><link href="/1"/><link rel="edit" href="/edit"/></entry>'
    '<entry><link rel="alternate" href="/2"/></entry></feed>'
)
CASES = [
    (SITEMAP, FeedKind.SITEMAP, ["http://www.bad.test/a?x=1&y=2", "http://www.bad.test/b"], True),
    (INDEX, FeedKind.SITEMAP_INDEX, ["http://www.bad.test/s1.xml.gz"], True),
    (RSS, FeedKind.RSS, ["http://www.bad.test/1", "http://www.bad.test/2"], True),
    (RDF, FeedKind.RDF, ["http://www.bad.test/1"], True),
    (ATOM, FeedKind.ATOM, ["/1", "/2"], True),
    (SITEMAP[:160], FeedKind.SITEMAP, ["http://www.bad.test/a?x=1&y=2"], False),
    (RSS.replace("<title>One", "<title>&nbsp;One"), FeedKind.RSS, [], False),
    (
        "<!DOCTYPE rss SYSTEM 'http://10.0.0.1/x.dtd'>" + RSS,
        FeedKind.RSS,
        ["http://www.bad.test/1", "http://www.bad.test/2"],
        True,
    ),
    ("<!DOCTYPE rss [<!ENTITY x 'boo'>]>" + RSS.replace("One", "&x;"), FeedKind.RSS, [], False),
    ("<!DOCTYPE rss [<!ENTITY x SYSTEM 'file:///etc/passwd'>]>" + RSS, FeedKind.RSS, [], False),
    ("<!DOCTYPE rss [<!ENTITY % x SYSTEM 'http://10.0.0.1/'> %x;]>" + RSS, FeedKind.RSS, [], False),
    ("<urlset>" + "<a>" * 200, FeedKind.SITEMAP, [], False),
    ("<urlset><url><loc></loc></url></urlset>", FeedKind.SITEMAP, [], True),
    ("<urlset><url>words <loc>/a</loc> more <loc>/b</loc></url></urlset>", FeedKind.SITEMAP, ["/a", "/b"], True),
    ("<urlset><url><loc>/a<x>words</x>/b</loc></url></urlset>", FeedKind.SITEMAP, ["/b"], True),
]


def page(body: bytes | str, path: str = "/sitemap.xml", content_type: str = "application/xml") -> Page:
    data = body.encode() if isinstance(body, str) else body
    return Page(SITE + path, SITE + path, 200, {"content-type": content_type}, data)


def read(body: bytes | str) -> Feed:
    found = feed_of(page(body))
    assert found is not None
    return found


@all_cases(("xml", "kind", "links", "complete"), CASES)
def test_what_a_file_lists(xml: str, kind: FeedKind, links: list[str], complete: object) -> None:
    found = read(xml)
    assert (found.kind, found.links, found.complete) == (kind, links, complete)


@all_cases("body", ["", "<html><urlset>"[:6], "<p>text", '{"rss": 1}', "\x1f\x8bbroken", "<rssx>"])
def test_other_pages_are_none(body: str) -> None:
    assert feed_of(page(body)) is None


def test_compressed_and_in_other_charsets() -> None:
    assert read(gzip.compress(SITEMAP.encode())).links == CASES[0][2]
    chinese = RSS.replace("News", "新闻网站的最新消息").replace(
        '<rss version="2.0">', '<?xml version="1.0" encoding="gb2312"?><rss>'
    )
    assert read(chinese.encode("gb18030")).links == CASES[2][2]


def test_entities_by_the_million_and_bombs_end() -> None:
    laughs = "".join(f"<!ENTITY l{n} '{f'&l{n - 1};' * 10}'>" for n in range(1, 12))
    assert read(f"<!DOCTYPE rss [<!ENTITY l0 'lol'>{laughs}]>" + RSS.replace("One", "&l11;")).links == []
    bomb = gzip.compress(b"<urlset>" + b"<url><loc>/x</loc></url>" * 3_000_000)
    assert len(feeds.gunzip(bomb, 1000)) == 1000
    assert len(read(bomb).links) == feeds.MAX_LINKS


def test_bounds() -> None:
    assert len(read("<urlset>" + "<url><loc>/x</loc></url>" * (feeds.MAX_LINKS + 10)).links) == feeds.MAX_LINKS
    assert read(f"<urlset><url><loc>/{'x' * 100_000}</loc></url></urlset>").links == ["/" + "x" * (feeds.MAX_TEXT - 1)]
    assert not read("<urlset>" + "<a/>" * (feeds.MAX_ELEMENTS + 1) + "</urlset>").complete


@given(st.binary(max_size=300))
def test_any_bytes(body: bytes) -> None:
    feed_of(page(b"<rss>" + body))
    feed_of(page(body))


@pytest.mark.parametrize(
    ("path", "content_type", "read"),
    [
        ("/paper", "application/pdf", True),
        ("/sitemap.xml.gz", "application/x-gzip", True),
        ("/sitemap.xml.gz", "application/octet-stream", True),
        ("/setup", "application/octet-stream", False),
        ("/disk.tar.gz", "application/gzip", False),
        ("/feed", "application/rss+xml", True),
        ("/film", "video/mp4", False),
    ],
)
async def test_which_bodies_are_fetched(origin: Origin, fetcher: Fetcher, path: str, content_type: str, read: object) -> None:
    origin.answers[path] = reply(b"%PDF-1.4 body", content_type=content_type)
    got = await fetcher.fetch(parse_url(origin.url(path)))
    assert bool(got.body) is read


BAD = Classification("gambling", 40.0, 20.0)
GOOD = Classification("", 0.0, 20.0)
HTML = (
    '<head><link rel="alternate" type="application/rss+xml" href="/feed"><link rel="alternate" hreflang="de" href="/de">'
    '<link rel=sitemap href="/map.xml"><link rel="alternate" type="application/atom+xml" href="http://elsewhere.test/feed"></head>'
)


def found(discovery: FocusedDiscovery, seen: Page, classification: Classification | None) -> list[str]:
    return [link.text.removeprefix(SITE) for link in discovery.links(seen, classification)]


def test_only_sites_with_harmful_pages_are_followed() -> None:
    discovery = FocusedDiscovery(loopback_settings(), lambda: 1000.0)
    assert found(discovery, page(SITEMAP), None) == []
    assert found(discovery, page(HTML, "/", "text/html"), GOOD) == []
    assert found(discovery, page(HTML, "/", "text/html"), BAD) == ["/sitemap.xml", "/feed", "/map.xml"]
    assert found(discovery, page(HTML, "/2", "text/html"), BAD) == []  # once a day
    assert found(discovery, page(SITEMAP), None) == ["/a?x=1&y=2", "/b"]
    assert found(discovery, page(INDEX), GOOD) == ["/s1.xml.gz"]
    assert found(discovery, page(RSS.replace("www.bad", "www.other")), None) == []
    assert found(discovery, page("<p>text"), None) == []


def test_a_day_later_a_site_is_forgotten() -> None:
    now = [0.0]
    discovery = FocusedDiscovery(loopback_settings(), lambda: now[0])
    assert found(discovery, page("", "/", "text/html"), BAD) == ["/sitemap.xml"]
    now[0] = 86_400.0
    assert found(discovery, page(SITEMAP), None) == []
    assert found(discovery, page("", "/", "text/html"), BAD) == ["/sitemap.xml"]


def test_bounds_of_discovery() -> None:
    many = "<urlset>" + "".join(f"<url><loc>/{n}</loc></url>" for n in range(100)) + "</urlset>"
    off = FocusedDiscovery(loopback_settings(follow_links=0), lambda: 0.0)
    assert found(off, page("", "/", "text/html"), BAD) == []
    some = FocusedDiscovery(loopback_settings(follow_links=7), lambda: 0.0)
    some.links(page("", "/", "text/html"), BAD)
    assert found(some, page(many), None) == [f"/{n}" for n in range(7)]
    unsafe = "<urlset><url><loc>/logout</loc></url><url><loc>ftp://www.bad.test/x</loc></url></urlset>"
    assert found(some, page(unsafe), None) == []


def test_so_many_sitemaps_and_feeds_are_followed() -> None:
    discovery = FocusedDiscovery(loopback_settings(), lambda: 1000.0)
    many = "".join(f"<link rel=sitemap href=/map{number}.xml>" for number in range(10))
    lists = [f"/map{number}.xml" for number in range(10)]
    assert found(discovery, page(many, "/", "text/html"), BAD) == ["/sitemap.xml", *lists[: sitemap_discovery.MAX_LISTS]]
    index = "<sitemapindex>" + "".join(f"<sitemap><loc>{path}</loc></sitemap>" for path in lists) + "</sitemapindex>"
    assert found(discovery, page(index), None) == lists[: sitemap_discovery.MAX_LISTS]
    again = "<sitemapindex>" + "<sitemap><loc>/1.xml</loc></sitemap>" * 3 + "<sitemap><loc>/2.xml</loc></sitemap></sitemapindex>"
    assert found(discovery, page(again), None) == ["/1.xml", "/2.xml"]


def test_which_links_of_a_page_are_sitemaps_and_feeds() -> None:
    links = (
        '<base href="/sub/"><a rel="sitemap" href="/on-page.xml">x</a><link rel="alternate" href="/no-type">'
        '<link rel="stylesheet" type="application/rss+xml" href="/no-feed"><link rel="x sitemap" href="map.xml">'
        '<link rel="alternate home" type="application/rdf+xml" href="feed"><link rel=sitemap href="http://[">'
    )
    discovery = FocusedDiscovery(loopback_settings(), lambda: 1000.0)
    assert found(discovery, page(links, "/", "text/html"), BAD) == ["/sitemap.xml", "/sub/map.xml", "/sub/feed"]
    other = FocusedDiscovery(loopback_settings(), lambda: 1000.0)
    assert found(other, page(links, "/", "text/plain"), BAD) == ["/sitemap.xml"]


def test_the_sitemaps_of_robots_txt_stand_in_for_the_usual_one() -> None:
    discovery = FocusedDiscovery(loopback_settings())
    named = ["http://maps.bad.test/1.xml", "http://elsewhere.test/map.xml", "http://www.bad.test/2.xml"]
    links = discovery.links(page("", "/", "text/html"), BAD, named)
    assert [link.text for link in links] == ["http://maps.bad.test/1.xml", "http://www.bad.test/2.xml"]


def test_sites_are_noted_for_a_day_and_the_oldest_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sitemap_discovery, "MAX_SITES", 2)
    now = [1_000.0]
    discovery = FocusedDiscovery(loopback_settings(), lambda: now[0])
    assert [discovery._note(site) for site in ("a.test", "b.test", "a.test", "c.test")] == [True, True, False, True]
    assert [discovery._is_harmful(site) for site in ("a.test", "b.test", "c.test")] == [False, True, True]
    now[0] += 86_399.0
    assert (discovery._is_harmful("b.test"), discovery._note("b.test")) == (True, False)
    now[0] += 1.0
    assert (discovery._is_harmful("b.test"), discovery._note("b.test")) == (False, True)
    assert discovery._note("d.test")
    assert [discovery._is_harmful(site) for site in ("b.test", "c.test", "d.test")] == [True, False, True]


def test_of_a_damaged_file_what_came_before_counts() -> None:
    packed = gzip.compress(b"words " * 100)
    assert feeds.gunzip(packed, 10_000) == b"words " * 100
    assert feeds.gunzip(packed, 12) == b"words words "
    assert feeds.gunzip(b"no gzip", 10) == b""


LOC = "<url><loc>/{}</loc></url>"


def test_what_is_read_of_a_file_at_its_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "MAX_DEPTH", 3)
    assert read(f"<urlset>{LOC.format(1)}</urlset>") == Feed(FeedKind.SITEMAP, ["/1"], complete=True)
    assert read(f"<urlset>{LOC.format(1)}<a><b><c/></b></a>{LOC.format(2)}</urlset>").links == ["/1"]
    monkeypatch.setattr(feeds, "MAX_ELEMENTS", 5)
    assert read(f"<urlset>{LOC.format(1)}{LOC.format(2)}</urlset>").complete
    assert not read(f"<urlset>{LOC.format(1)}{LOC.format(2)}<a/></urlset>").complete
    monkeypatch.setattr(feeds, "MAX_LINKS", 2)
    assert read(f"<urlset>{LOC.format(1)}{LOC.format(2)}{LOC.format(3)}</urlset>").links == ["/1", "/2"]
    monkeypatch.setattr(feeds, "MAX_TEXT", 3)
    assert read("<urlset><url><loc>/a<!-- -->bc</loc></url><url><loc>/</loc></url></urlset>").links == ["/ab", "/"]
    assert read("<urlset><url><loc>/ab<!-- -->c</loc></url></urlset>").links == ["/ab"]


def test_which_entries_are_links() -> None:
    atom = '<feed><entry><link rel="self" href="/no"/><link/><link href="/1"/></entry><link href="/no"/></feed>'
    assert read(atom).links == ["/1"]
    assert read("<rss><item><link>/1</link><x><link>/no</link></x></item><link>/no</link></rss>").links == ["/1"]
    assert read("<urlset><url><loc>no<b>no</b>/1</loc></url><loc>/no</loc></urlset>").links == ["/1"]

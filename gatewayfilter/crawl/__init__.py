"""From a URL that nobody knows to a page that can be judged: the queue's worker, the fetcher and its safeguards.

The way of one URL: `worker` leases it from the frontier · `url_policy` says whether it may be fetched at all · `robots` and
`politeness` say whether and when the site wants it · `fetcher` gets it through the `guard` at the socket, decoded and bounded ·
`visit` hands it to the sink (classifier and lists), in memory or, when that lags, over the `page_buffer` and its `archive` on the
disk · `outcomes` says what becomes of the URL · `following` puts links into the frontier that are not `seen`, as far as the
`strategy` goes. `context` holds what all of them work with; `foreground` goes the same way with somebody waiting.
"""

from gatewayfilter.crawl.buffer.backlog import Backlog
from gatewayfilter.crawl.buffer.page_buffer import PageBuffer
from gatewayfilter.crawl.buffer.warc_archive import WarcArchive
from gatewayfilter.crawl.context import CrawlContext
from gatewayfilter.crawl.crawl_worker import CrawlWorker
from gatewayfilter.crawl.fetch.url_policy import may_crawl
from gatewayfilter.crawl.foreground import CrawlProgress, ForegroundCrawl
from gatewayfilter.crawl.frontier.digest_tree import DigestTree
from gatewayfilter.crawl.frontier.fleet_frontier import FleetFrontier
from gatewayfilter.crawl.frontier.seen_filter import SeenFilter
from gatewayfilter.crawl.links.images import page_pictures
from gatewayfilter.crawl.links.page_links import out_links
from gatewayfilter.crawl.links.rule_links import rule_links
from gatewayfilter.crawl.links.sitemap_discovery import FocusedDiscovery
from gatewayfilter.crawl.visitor import CrawlOutcome

__all__ = [
    "Backlog",
    "CrawlContext",
    "CrawlOutcome",
    "CrawlProgress",
    "CrawlWorker",
    "DigestTree",
    "FleetFrontier",
    "FocusedDiscovery",
    "ForegroundCrawl",
    "PageBuffer",
    "SeenFilter",
    "WarcArchive",
    "may_crawl",
    "out_links",
    "page_pictures",
    "rule_links",
]

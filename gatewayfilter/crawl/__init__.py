"""From a URL that nobody knows to a page that can be judged: the queue's worker, the fetcher and its safeguards.

The way of one URL: `worker` leases it from the frontier · `url_policy` says whether it may be fetched at all · `robots` and
`politeness` say whether and when the site wants it · `fetcher` gets it through the `guard` at the socket, decoded and bounded ·
`visit` hands it to the sink (classifier and lists), in memory or, when that lags, over the `page_buffer` and its `archive` on the
disk · `settlement` says what becomes of the URL · `following` puts links into the frontier that are not `seen`, as far as the
`strategy` goes. `context` holds what all of them work with; `foreground` goes the same way with somebody waiting.
"""

from gatewayfilter.crawl.archive import WarcArchive
from gatewayfilter.crawl.backlog import Backlog
from gatewayfilter.crawl.context import CrawlContext
from gatewayfilter.crawl.digest_tree import DigestTree
from gatewayfilter.crawl.discovery import FocusedDiscovery
from gatewayfilter.crawl.fleet import FleetFrontier
from gatewayfilter.crawl.foreground import CrawlProgress, ForegroundCrawl
from gatewayfilter.crawl.links import out_links
from gatewayfilter.crawl.page_buffer import PageBuffer
from gatewayfilter.crawl.pictures import page_pictures
from gatewayfilter.crawl.rule_links import rule_links
from gatewayfilter.crawl.seen import SeenFilter
from gatewayfilter.crawl.url_policy import may_crawl
from gatewayfilter.crawl.visit import CrawlOutcome
from gatewayfilter.crawl.worker import CrawlWorker

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

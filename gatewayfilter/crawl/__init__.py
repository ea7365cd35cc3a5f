"""The crawler: from a URL in the queue to a judged page.

The steps of one URL: `crawl_worker` leases it from the frontier · `fetch.url_policy` decides whether it may be fetched at all,
`fetch.robots` and `fetch.politeness` whether and when the site allows it · `fetch.fetcher` gets it, decoded and bounded, over
sockets that `net.address_guard` admits · `page_fetch` is all of that, and `page_judge` hands the page to the sink (classifier
and lists), in memory or, when that lags, over `buffer.page_buffer` and its archive on the disk · `outcomes` sets the URL's next
state · `link_queue` puts links into the frontier that were not seen, as far as `links.strategy` goes. `context` holds the
collaborators of all of them; `visitor` is the visit in one process;
`foreground` does the same while a command waits; `spool_reader` judges pages that passed the proxy, without fetching them.
"""

from gatewayfilter.crawl.buffer.backlog import Backlog
from gatewayfilter.crawl.buffer.page_buffer import PageBuffer
from gatewayfilter.crawl.buffer.warc_archive import WarcArchive
from gatewayfilter.crawl.context import CrawlContext
from gatewayfilter.crawl.crawl_worker import CrawlWorker
from gatewayfilter.crawl.fetch.url_policy import may_crawl
from gatewayfilter.crawl.foreground import CrawlProgress, ForegroundCrawl
from gatewayfilter.crawl.frontier.digest_tree import DigestTree
from gatewayfilter.crawl.frontier.fleet_leases import FleetLeases
from gatewayfilter.crawl.frontier.seen_filter import SeenFilter
from gatewayfilter.crawl.links.link_finder import LinkFinder
from gatewayfilter.crawl.links.rule_links import rule_links
from gatewayfilter.crawl.spool_reader import SpoolReader
from gatewayfilter.crawl.visitor import CrawlOutcome

__all__ = [
    "Backlog",
    "CrawlContext",
    "CrawlOutcome",
    "CrawlProgress",
    "CrawlWorker",
    "DigestTree",
    "FleetLeases",
    "ForegroundCrawl",
    "LinkFinder",
    "PageBuffer",
    "SeenFilter",
    "SpoolReader",
    "WarcArchive",
    "may_crawl",
    "rule_links",
]

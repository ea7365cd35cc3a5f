"""Settings of section `[crawl]` and `[crawl.tasks.NAME]`."""

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator

from gatewayfilter.settings.base import Networks, Section


class RobotsRule(StrEnum):
    """Whether the crawler obeys robots.txt: for every page, or only for pages that no user visited."""

    ALWAYS = "always"
    LINKS = "links"
    NEVER = "never"


class Dedup(StrEnum):
    """How the crawler remembers which URLs it has seen."""

    BLOOM = "bloom"
    TREE = "tree"


class RenderRule(StrEnum):
    """Whether pages that a script builds are rendered in a browser before they are judged."""

    OFF = "off"
    AUTO = "auto"


class Follow(StrEnum):
    """Which pages' links a crawl task follows."""

    ALL = "all"
    HARMFUL = "harmful"
    NONE = "none"


_HOST_PATTERN = re.compile(r"(\*\.)?[^\s/*:@]+")


class CrawlTask(Section):
    """The strategy of one crawl task."""

    depth: int = Field(default=1, ge=0, le=100)
    """Depth of the crawl, in links from the task's first pages; 0 follows none."""
    pages_per_site: int = Field(default=100, ge=1, le=1_000_000)
    """Most pages of one site (registrable domain) that links lead to, a day, or a `recrawl_hours` when that is longer."""
    follow: Follow = Follow.ALL
    """Links of which pages are followed: of `all`, of `harmful` ones, or of `none`."""
    hosts: tuple[str, ...] = ()
    """Hosts that links may lead to: `example.com`, or `*.example.com` for all below it too; none: the page's own site."""
    sitemaps: bool = False
    """Whether pages in the sitemaps and feeds of the first pages' sites are fetched too, whatever `follow` is."""
    priority: int = Field(default=100, ge=11, le=1000)
    """The smaller, the sooner: users' visits have 10, re-checks 50, links of harmful pages 100."""
    recrawl_hours: float = Field(default=0, ge=0, le=87_600)
    """Hours until a page of the task is fetched again; 0 fetches it once."""

    @field_validator("hosts")
    @classmethod
    def _are_hosts(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for item in value:
            if not _HOST_PATTERN.fullmatch(item):
                raise ValueError(f"must be hosts such as example.com or *.example.com, not {item!r}")
        return tuple(item.lower() for item in value)


class CrawlSettings(Section):
    """How pages are fetched."""

    allow_networks: Networks = ()
    """Private address ranges that may be crawled, e.g. `["127.0.0.0/8"]`; everything private is refused otherwise."""
    allow_ports: tuple[Annotated[int, Field(ge=1, le=65535)], ...] = (80, 443)
    """Ports that may be crawled on public addresses; `allow_networks` may be crawled on any."""
    workers: int = Field(default=1, ge=0, le=64)
    """Crawler processes; each takes sites of its own, and those of one that dies. 0: none here, others fetch the queue."""
    concurrency: int = Field(default=32, ge=1, le=500)
    """Pages in flight."""
    per_host_concurrency: int = Field(default=4, ge=1, le=100)
    """Pages in flight on one host."""
    per_host_delay_s: float = Field(default=1.0, ge=0, le=3600)
    """Least time between two requests to one host, in seconds; a user's own visit goes ahead of it."""
    per_host_delay_max_s: float = Field(default=30.0, ge=0, le=3600)
    """Longest such delay, in seconds, for a host that is slow, fails, answers 429 or 503, or sets a delay; 0: not raised."""
    robots: RobotsRule = RobotsRule.ALWAYS
    """When robots.txt is obeyed: `always`, only for `links` that no user visited, or `never`."""
    dns_ttl_s: float = Field(default=60.0, ge=0, le=86_400)
    """Lifetime of entries in the crawler's DNS cache, in seconds; 0 disables the cache."""
    timeout_s: float = Field(default=10.0, gt=0, le=300)
    """Longest time for one page, redirects included, in seconds."""
    max_bytes: int = Field(default=2_000_000, ge=1_000, le=50_000_000)
    """Most decoded bytes read of a page."""
    max_redirects: int = Field(default=5, ge=0, le=20)
    """Most redirects followed; each target is checked like a first URL."""
    max_attempts: int = Field(default=3, ge=1, le=20)
    """Tries before a URL goes to the dead letters."""
    max_waiting: int = Field(default=200_000, ge=1)
    """Most URLs that wait; beyond it new ones are dropped and counted."""
    follow_links: int = Field(default=20, ge=0, le=1000)
    """Most links of a harmful page to its own site that are followed; 0 follows none."""
    page_images: int = Field(default=10, ge=0, le=1000)
    """Most images of a judged page that are checked, if a list of known images or an image classifier is set; 0: none."""
    tasks: dict[Annotated[str, Field(pattern="^[a-z0-9][a-z0-9_-]{0,63}$")], CrawlTask] = Field(default={})
    """Strategies by name, tables `[crawl.tasks.NAME]`; in the environment as JSON."""
    dedup: Dedup = Dedup.BLOOM
    """How seen links are remembered: `bloom` (2 bytes each, errs once in a thousand) or the exact `tree` (17 bytes each)."""
    archive_mb: int = Field(default=200, ge=0, le=10_000_000)
    """Most megabytes of fetched pages kept on disk, evidence of blocked ones aside; 0 keeps none, and pages wait in memory."""
    render: RenderRule = RenderRule.OFF
    """`auto` renders pages that a script builds in the system's Chromium before they are judged; needs the extra `render`."""
    proxies: tuple[str, ...] = ()
    """Proxies that the crawler goes through (`HOST:PORT` or `http://USER:PASSWORD@HOST:PORT`); none: it goes itself."""
    proxies_from: tuple[str, ...] = ()
    """Files and http(s) URLs with further proxies, one a line; read again every ten minutes."""
    proxy_check_url: str = ""
    """A page that proxies are checked with; one that repeats the request shows who is anonymous; empty checks none."""
    proxies_anonymous: bool = False
    """Whether proxies that reveal their client are left out; only a check detects that."""
    user_agent: str = "GatewayFilter/0.1 (+content classification for a local network)"
    """What the crawler calls itself."""
    upstream_ca: Path | None = None
    """A PEM file of further authorities to trust when crawling."""

"""The settings by section: names, types, defaults and what each is for. How they are read: config.py."""

import os
from pathlib import Path

from pydantic import Field

from gatewayfilter.settings.base import Section, split_address
from gatewayfilter.settings.classify import ClassifySettings, Extractor, Strictness
from gatewayfilter.settings.crawl import CrawlSettings, CrawlTask, Dedup, Follow, RenderRule, RobotsRule
from gatewayfilter.settings.filter import CosmeticScope, FilterSettings
from gatewayfilter.settings.fleet import FleetSettings, Shared
from gatewayfilter.settings.gateway import GatewaySettings
from gatewayfilter.settings.integration.decide import DecideSettings
from gatewayfilter.settings.integration.icap import IcapSettings
from gatewayfilter.settings.integration.rpz import RpzSettings
from gatewayfilter.settings.integration.squid import HelperSettings
from gatewayfilter.settings.learn import DomainGrowth, GrowthMode, LearnSettings
from gatewayfilter.settings.log import LogFormat, LogLevel, LogPrivacy, LogSettings
from gatewayfilter.settings.metrics import MetricsSettings
from gatewayfilter.settings.notify import MailSecurity, NotifyEvent, NotifySettings
from gatewayfilter.settings.proxy import (
    BlockDetails,
    DenyRule,
    Http2Clients,
    OnError,
    ProxySettings,
    RawTcpRule,
    TlsSettings,
    UnknownRule,
)
from gatewayfilter.settings.sources import SourceSettings
from gatewayfilter.settings.store import CacheSettings, KafkaSettings, QueueSettings, StoreSettings, SyncSettings
from gatewayfilter.settings.web import OidcSettings, PasswordUse, WebSettings, WebTls

__all__ = [
    "BlockDetails",
    "CacheSettings",
    "ClassifySettings",
    "CosmeticScope",
    "CrawlSettings",
    "CrawlTask",
    "DecideSettings",
    "Dedup",
    "DenyRule",
    "DomainGrowth",
    "Extractor",
    "FilterSettings",
    "FleetSettings",
    "Follow",
    "GatewaySettings",
    "GrowthMode",
    "HelperSettings",
    "Http2Clients",
    "IcapSettings",
    "KafkaSettings",
    "LearnSettings",
    "LogFormat",
    "LogLevel",
    "LogPrivacy",
    "LogSettings",
    "MailSecurity",
    "MetricsSettings",
    "NotifyEvent",
    "NotifySettings",
    "OidcSettings",
    "OnError",
    "PasswordUse",
    "ProxySettings",
    "QueueSettings",
    "RawTcpRule",
    "RenderRule",
    "RobotsRule",
    "RpzSettings",
    "Section",
    "Settings",
    "Shared",
    "SourceSettings",
    "StoreSettings",
    "Strictness",
    "SyncSettings",
    "TlsSettings",
    "UnknownRule",
    "WebSettings",
    "WebTls",
    "bundled_folder",
    "default_data_dir",
    "split_address",
]


def default_data_dir() -> Path:
    """Returns the state folder: `$XDG_STATE_HOME/gatewayfilter`, or `~/.local/state/gatewayfilter`."""
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "gatewayfilter"


def bundled_folder() -> Path:
    """Returns the folder of the lists that come with the program: in the wheel `bundled/`, in a checkout `lists/`."""
    package = Path(__file__).parents[1]
    installed = package / "bundled"
    return installed if installed.is_dir() else package.parent / "lists"


class Settings(Section):
    """All settings."""

    data_dir: Path = Field(default_factory=default_data_dir)
    """State folder: database, snapshots, subscriptions, CA. Made with mode 0700."""
    proxy: ProxySettings = ProxySettings()
    tls: TlsSettings = TlsSettings()
    crawl: CrawlSettings = CrawlSettings()
    classify: ClassifySettings = ClassifySettings()
    learn: LearnSettings = LearnSettings()
    filter: FilterSettings = FilterSettings()
    sources: SourceSettings = SourceSettings()
    store: StoreSettings = StoreSettings()
    cache: CacheSettings = CacheSettings()
    queue: QueueSettings = QueueSettings()
    sync: SyncSettings = SyncSettings()
    kafka: KafkaSettings = KafkaSettings()
    gateway: GatewaySettings = GatewaySettings()
    log: LogSettings = LogSettings()
    notify: NotifySettings = NotifySettings()
    metrics: MetricsSettings = MetricsSettings()
    web: WebSettings = WebSettings()
    fleet: FleetSettings = FleetSettings()
    helper: HelperSettings = HelperSettings()
    icap: IcapSettings = IcapSettings()
    rpz: RpzSettings = RpzSettings()
    decide: DecideSettings = DecideSettings()

    @property
    def store_url(self) -> str:
        """The SQLAlchemy URL in use."""
        return self.store.url or f"sqlite:///{self.data_dir / 'gatewayfilter.sqlite3'}"

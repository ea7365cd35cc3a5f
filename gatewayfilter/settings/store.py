"""Settings of sections `[store]`, `[cache]`, `[queue]`, `[sync]`, `[kafka]`: the database, and servers shared with others."""

import re
from pathlib import Path
from typing import Annotated, Final, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, field_validator, model_validator

from gatewayfilter.settings.base import Section

SCHEMES: Final = ("redis", "rediss", "redis-cluster", "rediss-cluster")
"""Schemes of the URLs of Redis: one server or a cluster, without or with TLS."""
_MOST_CHARACTERS: Final = 2048
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
"""Kafka's own rule for names of topics."""


def _checked(value: SecretStr) -> SecretStr:
    """Returns the URL. The messages leave the value out: it may hold a password."""
    text = value.get_secret_value()
    if text and (len(text) > _MOST_CHARACTERS or not _is_redis_url(text)):
        raise ValueError(
            "must be redis://[USER:PASSWORD@]HOST[:PORT][/NUMBER], or rediss://, redis-cluster://, rediss-cluster://"
        )
    return value


def _is_redis_url(text: str) -> bool:
    """Returns whether a URL of Redis has a form that is accepted; the hosts of a cluster may be several, with commas."""
    if not text.isascii() or not text.isprintable() or " " in text:
        return False
    try:
        parts = urlsplit(text)
        hosts = [urlsplit(f"//{host}") for host in parts.netloc.rpartition("@")[2].split(",")]
        named = all(host.hostname and (host.port is None or 0 < host.port < 65_536) for host in hosts)
    except ValueError:
        return False
    cluster = parts.scheme.endswith("-cluster")
    number = parts.path.strip("/")
    return (
        parts.scheme in SCHEMES
        and named
        and (cluster or len(hosts) == 1)
        and not parts.query
        and not parts.fragment
        and (not number or (number.isdigit() and len(number) < 4 and not cluster))
    )


RedisUrl = Annotated[SecretStr, AfterValidator(_checked)]
"""URL of a Redis, which may hold a password; empty for none."""


class StoreSettings(Section):
    """Where small, changing data lives."""

    url: str = ""
    """SQLAlchemy URL; empty means SQLite in the state folder; `postgresql+psycopg://…` needs the extra `postgres`."""


class CacheSettings(Section):
    """A cache of judged content that machines share."""

    url: RedisUrl = SecretStr("")
    """Redis for verdicts of known content: `redis://`, `rediss://` (TLS), `redis-cluster://`; needs the extra `redis`."""
    key_file: Path | None = None
    """File with the 32 bytes of the key, the same on all machines; without one that of the state folder counts."""
    timeout_s: float = Field(default=0.25, gt=0, le=10)
    """Longest wait for an answer of the cache, in seconds."""


class QueueSettings(Section):
    """A crawl queue that machines share."""

    url: RedisUrl = SecretStr("")
    """Redis for the crawl queue, as `cache.url`; empty means the database."""
    timeout_s: float = Field(default=2.0, gt=0, le=60)
    """Longest wait for an answer of the queue, in seconds."""


class SyncSettings(Section):
    """Gateways with equal rights that keep rules, policies and sources in step."""

    url: RedisUrl = SecretStr("")
    """Redis by which gateways keep manual rules, policies and sources in step, as `cache.url`; empty means that none do."""
    timeout_s: float = Field(default=2.0, gt=0, le=60)
    """Longest wait for an answer of that Redis, in seconds."""


class KafkaSettings(Section):
    """Kafka, for the filter's own decisions."""

    brokers: str = ""
    """Kafka's brokers, `HOST:PORT` with commas between them; empty means that nothing is sent."""
    decisions: str = ""
    """Topic for the filter's own decisions, as the log has them; empty means none. Needs the extra `stream`."""
    config_file: Path | None = None
    """File with lines `NAME=VALUE` for librdkafka: TLS, SASL."""

    @field_validator("brokers")
    @classmethod
    def _are_addresses(cls, value: str) -> str:
        if value and (len(value) > _MOST_CHARACTERS or not all(_is_address(one) for one in value.split(","))):
            raise ValueError("must be HOST:PORT, several with commas between them")
        return value

    @field_validator("decisions")
    @classmethod
    def _is_topic(cls, value: str) -> str:
        if value and (not _TOPIC.fullmatch(value) or value in {".", ".."}):
            raise ValueError("must be a topic of Kafka: up to 249 letters, digits, dots, hyphens and underscores")
        return value

    @model_validator(mode="after")
    def _has_brokers(self) -> Self:
        if self.decisions and not self.brokers:
            raise ValueError("kafka.decisions needs kafka.brokers")
        return self


def _is_address(text: str) -> bool:
    """Returns whether a text is `HOST:PORT`."""
    if not text.isascii() or not text.isprintable() or " " in text or "/" in text or "@" in text:
        return False
    try:
        parts = urlsplit(f"//{text}")
        return bool(parts.hostname) and 0 < (parts.port or 0) < 65_536
    except ValueError:
        return False

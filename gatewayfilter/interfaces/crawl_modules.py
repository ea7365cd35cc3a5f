"""The modules of a crawler that run apart: each takes messages of one channel and answers with messages of others."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Channel(StrEnum):
    """What messages are about, and so who takes them."""

    JOBS = "jobs"
    """URLs to fetch, of the scheduler for fetchers."""
    PAGES = "pages"
    """Fetched pages, of fetchers for parsers."""
    RESULTS = "results"
    """Judged pages and failures, of fetchers and parsers for the storage."""


@dataclass(frozen=True, slots=True)
class Letter:
    """A message. Those with one key are taken in their order, by one process."""

    channel: Channel
    key: bytes
    value: bytes


class CrawlModule(Protocol):
    """One module. It may get a message twice, and several at once."""

    async def handle(self, value: bytes) -> Sequence[Letter]:
        """Does the work of a message. Returns what follows from it; when that is sent, the message is done with.

        Raises:
            ValueError: the message cannot be read: it is no message of ours, or damaged.
        """
        ...

    def given_up(self, value: bytes, reason: str) -> Sequence[Letter]:
        """Returns what follows from a message at which this module failed for good. Never raises."""
        ...


class SendLetters(Protocol):
    """Sends messages."""

    def send(self, letters: Sequence[Letter]) -> None:
        """Sends them, and returns when all are acknowledged.

        Raises:
            GatewayFilterError: not all were. Some may have been.
        """
        ...

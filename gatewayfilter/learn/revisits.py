"""Pages that have not changed: their origin says so, and their verdict counts anew without a judgement.

Source: [cloud-crawler §3] pages are fetched anew by a schedule; conditional requests (RFC 9110 §13) spare the body and the judge.
Deviation: that a harmless page has not changed is believed for `BELIEVED_S` only; then it is fetched whole and judged. Otherwise
a site could get itself a harmless verdict and answer "not modified" for ever. A harmful one gains nothing by that.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from gatewayfilter.interfaces import Page, Validators, ValidatorStore, VerdictStore
from gatewayfilter.learn.growth import Growth
from gatewayfilter.model import Classification
from gatewayfilter.settings import GrowthMode, LearnSettings

BELIEVED_S: Final = 30 * 86_400.0
"""How long after a harmless page came whole its origin is believed that it has not changed."""
BELIEVED_HARMFUL_S: Final = 180 * 86_400.0
"""Likewise of a harmful one; the re-check of a block comes after `learn.block_days`."""
MAX_LENGTH: Final = 512
"""Longer validators are not kept: an ETag is some 40 bytes."""


class Revisits:
    """Implements `interfaces.Revisits`.

    Args:
        validators: where they are kept.
        verdicts: what was judged.
        growth: lets an entry count anew.
        settings: a harmful page that waits for a person (`learn.mode = "review"`) is judged anew, so that it is asked about.
        words: returns the version of the words in use: other words judge the same page differently.
        clock: Unix seconds.
    """

    def __init__(
        self,
        validators: ValidatorStore,
        verdicts: VerdictStore,
        growth: Growth,
        settings: LearnSettings,
        words: Callable[[], str],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._validators = validators
        self._verdicts = verdicts
        self._growth = growth
        self._settings = settings
        self._words = words
        self._clock = clock

    def conditions(self, urls: Sequence[str]) -> Mapping[str, Validators]:
        """Returns by which validators pages may be asked for; a URL that is missing has to be fetched whole.

        Raises:
            StoreError: the database refuses.
        """
        words, now = self._words(), self._clock()
        found = self._validators.find(urls, words, now - BELIEVED_HARMFUL_S)
        if not found:
            return found
        recent = self._validators.find(list(found), words, now - BELIEVED_S)
        return {url: known for url, known in found.items() if url in recent or self._is_harmful(url)}

    def note(self, page: Page) -> None:
        """Keeps the validators of a page that came whole and was judged; of one without any, forgets what was known.

        Raises:
            StoreError: the database refuses.
        """
        self._validators.note(page.url, validators_of(page), self._words(), self._clock())

    def renew(self, page: Page) -> Classification | None:
        """Lets the verdict of an unchanged page count anew; `None` when there is none that may.

        Raises:
            StoreError: the database refuses.
        """
        known = self._verdicts.find(page.url)
        if known is None:
            return None
        classification, _ = known
        if classification.harmful and self._settings.mode_of(classification.category) is GrowthMode.REVIEW:
            return None
        self._growth.learn(page, classification)
        return classification

    def _is_harmful(self, url: str) -> bool:
        known = self._verdicts.find(url)
        return known is not None and known[0].harmful


def validators_of(page: Page) -> Validators | None:
    """Returns the validators that a page came with, `None` for none that can be used."""
    etag, last_modified = (_usable(page.headers.get(name, "")) for name in ("etag", "last-modified"))
    return Validators(page.final_url, etag, last_modified) if etag or last_modified else None


def _usable(value: str) -> str:
    return value if len(value) <= MAX_LENGTH and value.isascii() and value.isprintable() else ""

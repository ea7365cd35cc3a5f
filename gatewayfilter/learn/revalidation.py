"""Unchanged pages (304): their verdict is renewed without classification.

Source: [cloud-crawler §3] pages are fetched again by a schedule; conditional requests (RFC 9110 §13) spare body and classifier.
Deviation: that a harmless page has not changed is believed for `BELIEVED_S` only; then it is fetched whole and judged. Otherwise
a site could get itself a harmless verdict and answer "not modified" for ever. A harmful one gains nothing by that.
And a manual verdict on the same content, wherever it was seen, counts more than an earlier verdict: then the page is fetched
whole too, and known again.
"""

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from gatewayfilter.errors import ClassifyError
from gatewayfilter.interfaces import Page, ReadText, Validators, ValidatorStore, VerdictStore
from gatewayfilter.learn.verdicts.content_id import image_digest, image_identity
from gatewayfilter.learn.verdicts.list_growth import ListGrowth
from gatewayfilter.learn.verdicts.recognition import Recognition
from gatewayfilter.model import Classification, ContentId, ContentKind
from gatewayfilter.settings import GrowthMode, LearnSettings

BELIEVED_S: Final = 30 * 86_400.0
"""How long after a harmless page came whole its origin is believed that it has not changed."""
BELIEVED_HARMFUL_S: Final = 180 * 86_400.0
"""Likewise of a harmful one; the re-check of a block comes after `learn.block_days`."""
_IDENTITY_BYTES: Final = 33
"""Of a content's identity as it is noted: its kind's first letter, digest and proof."""
_KINDS: Final = {kind.value[:1].encode(): kind for kind in ContentKind}
MAX_LENGTH: Final = 512
"""Longer validators are not kept: an ETag is some 40 bytes."""


class Revisits:
    """Implements `interfaces.Revisits`.

    Args:
        validators: where they are kept.
        verdicts: what was judged.
        list_growth: renews an entry.
        settings: a harmful page that waits for review (`learn.mode = "review"`) is judged again, so that its task is opened.
        words: returns the version of the words in use: other words judge the same page differently.
        clock: Unix seconds.
        recognition: the manual verdicts on content; `None` where there are none.
        read_text: returns the text of a page: a manual verdict is about its text too.
    """

    def __init__(
        self,
        validators: ValidatorStore,
        verdicts: VerdictStore,
        list_growth: ListGrowth,
        settings: LearnSettings,
        words: Callable[[], str],
        clock: Callable[[], float] = time.time,
        *,
        recognition: Recognition | None = None,
        read_text: ReadText | None = None,
    ) -> None:
        self._validators = validators
        self._verdicts = verdicts
        self._list_growth = list_growth
        self._settings = settings
        self._words = words
        self._clock = clock
        self._recognition = recognition
        self._read_text = read_text

    def conditions(self, urls: Sequence[str]) -> Mapping[str, Validators]:
        """Returns the validators for conditional requests; a URL that is missing has to be fetched whole.

        Raises:
            StoreError: the database refuses.
        """
        words, now = self._words(), self._clock()
        found = self._validators.find(urls, words, now - BELIEVED_HARMFUL_S)
        if not found:
            return found
        recent = self._validators.find(list(found), words, now - BELIEVED_S)
        return {
            url: known
            for url, known in found.items()
            if not self._is_by_hand(known.contents) and (url in recent or self._is_harmful(url))
        }

    def note(self, page: Page) -> None:
        """Keeps the validators of a page that came whole and was judged; of one without any, forgets what was known.

        Those of a page with a manual verdict are not kept: it comes whole each time, and costs no judgement.

        Raises:
            StoreError: the database refuses.
        """
        validators = validators_of(page)
        if validators is not None and self._recognition is not None:
            contents = self._contents(page, self._recognition)
            # A manual verdict may be undone, and then a verdict that rests on it must not be renewed.
            validators = None if self._is_by_hand(contents) else replace(validators, contents=contents)
        self._validators.note(page.url, validators, self._words(), self._clock())

    def renew(self, page: Page) -> Classification | None:
        """Renews the verdict of an unchanged page; `None` when there is none that may be renewed.

        Raises:
            StoreError: the database refuses.
        """
        known = self._verdicts.find(page.url)
        if known is None:
            return None
        classification, _ = known
        if classification.harmful and self._settings.mode_of(classification.category) is GrowthMode.REVIEW:
            return None
        self._list_growth.learn(page, classification, counts=False)
        return classification

    def _contents(self, page: Page, recognition: Recognition) -> bytes:
        """Returns the identities of a page's content. The text of harmless ones is not used in a judgement either."""
        if page.content_type.startswith("image/"):
            return _written(image_identity(image_digest(page.body)))
        contents = _written(recognition.ids.of_page(page.body))
        if self._read_text is not None and self._is_harmful(page.url):
            with contextlib.suppress(ClassifyError):
                contents += _written(recognition.ids.of_text(self._read_text.text_of(page)))
        return contents

    def _is_by_hand(self, contents: bytes) -> bool:
        """Returns whether there is a manual verdict, or one of a list of known images, on one of these contents."""
        if self._recognition is None:
            return False
        found = [self._recognition.recorded(content) for content in _identities(contents)]
        return any(one is not None and (one.judge or one.content.kind is ContentKind.IMAGE) for one in found)

    def _is_harmful(self, url: str) -> bool:
        known = self._verdicts.find(url)
        return known is not None and known[0].harmful


def validators_of(page: Page) -> Validators | None:
    """Returns the validators that a page came with, `None` for none that can be used."""
    etag, last_modified = (_usable(page.headers.get(name, "")) for name in ("etag", "last-modified"))
    return Validators(page.final_url, etag, last_modified) if etag or last_modified else None


def _written(content: ContentId) -> bytes:
    return content.kind.value[:1].encode() + content.digest + content.proof


def _identities(contents: bytes) -> list[ContentId]:
    parts = [contents[at : at + _IDENTITY_BYTES] for at in range(0, len(contents), _IDENTITY_BYTES)]
    return [ContentId(_KINDS[part[:1]], part[1:17], part[17:]) for part in parts]


def _usable(value: str) -> str:
    return value if len(value) <= MAX_LENGTH and value.isascii() and value.isprintable() else ""

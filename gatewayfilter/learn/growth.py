"""From a classification to list entries.

Source: [url-filter §crawler and sensitive words] what is judged harmful goes on the black list, all else on the white list.
Deviation: entries expire and are judged anew, because pages change; and each carries its evidence.
"""

import time
from collections.abc import Callable

from gatewayfilter.config import LearnSettings
from gatewayfilter.interfaces import ListStore, Page, VerdictStore
from gatewayfilter.model import Classification, LearnedEntry, ListAction
from gatewayfilter.urls import Url, parse_url

_DAY_S = 86_400.0


class Growth:
    """Writes what was learned of a page into the lists, where the change feed carries it to every worker.

    An entry is for exactly the URLs that were fetched, never for a host or a domain: one page says nothing of the others, and
    whoever may write on one page of a site could otherwise get all of it blocked. People's rules are not looked at here: a
    person's allow stands before every list in the engine's order, so a learned block of the same URL has no effect until
    that rule is removed.
    """

    def __init__(
        self, lists: ListStore, verdicts: VerdictStore, settings: LearnSettings, clock: Callable[[], float] = time.time
    ) -> None:
        self._lists = lists
        self._verdicts = verdicts
        self._settings = settings
        self._clock = clock

    def learn(self, page: Page, classification: Classification) -> LearnedEntry:
        """Records the verdict with its evidence and puts the page on its list.

        After a redirect both URLs are listed, the one that was asked for and the one that answered: the second is what other
        pages link to.

        Returns:
            The entry of the URL that was asked for.

        Raises:
            StoreError: it could not be written. The verdict may be recorded already; learning the page again makes it whole.
        """
        now = self._clock()
        urls = {url.text: url for url in (parse_url(page.url), parse_url(page.final_url))}
        for text in urls:
            self._verdicts.record(text, classification, now)
        entries = {url.key: self._entry(url, classification, now) for url in reversed(urls.values())}
        self._lists.put_learned(tuple(entries.values()))
        return entries[parse_url(page.url).key]

    def _entry(self, url: Url, classification: Classification, now: float) -> LearnedEntry:
        harmful = classification.harmful
        days = self._settings.block_days if harmful else self._settings.allow_days
        return LearnedEntry(
            key=url.key,
            action=ListAction.BLOCK if harmful else ListAction.ALLOW,
            category=classification.category,
            url=url.text,
            detail=classification.summary(),
            created_at=now,
            expires_at=now + days * _DAY_S,
        )

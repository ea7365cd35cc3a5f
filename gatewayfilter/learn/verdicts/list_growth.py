"""List growth: from a classification to list entries.

Source: [url-filter §crawler and sensitive words] what is judged harmful goes on the black list, all else on the white list.
Deviation: entries expire and are judged again, because pages change; and each carries its evidence.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from gatewayfilter.interfaces import ListStore, Page, VerdictStore
from gatewayfilter.learn.verdicts.second_look import SecondLook
from gatewayfilter.learn.verdicts.user_content_hosts import UserContentHosts
from gatewayfilter.model import Classification, LearnedEntry, ListAction
from gatewayfilter.settings import DomainGrowth, LearnSettings
from gatewayfilter.urls import Url, domain_key, is_ip_literal, parse_url

_DAY_S = 86_400.0
CONFIRMED = "; confirmed by a person"
"""The end of the evidence of an entry that a reviewer approved."""


@dataclass(frozen=True, slots=True)
class _Lesson:
    """What is to be written of a judged page: its verdict under each of its URLs, and an entry for each list key.

    Attributes:
        key: of the URL that was requested.
        counting: the URL that counts for its host, `""` for none.
    """

    key: str
    classification: Classification
    urls: tuple[str, ...]
    counting: str
    entries: dict[str, LearnedEntry]


class ListGrowth:
    """Writes what was learned of a page into the lists, where the change feed carries it to every worker.

    An entry is for exactly the URLs that were fetched: one page is no evidence about the others, and an author of one page
    of a site could otherwise get all of it blocked. A host is listed whole only when most of what is known of it is harmful
    (`learn_host`): of its pages that the crawler fetched itself, by URLs without a query. People's rules are not looked at
    here: a manual allow stands before every list in the engine's order, so a learned block of the same URL has no effect until
    that rule is removed.

    Args:
        lists: where entries go.
        verdicts: where judgements go.
        settings: how long entries count, and when a host is listed whole.
        clock: Unix seconds.
        user_content: hosts with content of their users.
        together: makes one transaction of what is written meanwhile.
        second_look: moves verdicts that are not clear by facts about the host; `None` for the classifier alone.
    """

    def __init__(
        self,
        lists: ListStore,
        verdicts: VerdictStore,
        settings: LearnSettings,
        clock: Callable[[], float] = time.time,
        user_content: UserContentHosts | None = None,
        together: Callable[[], AbstractContextManager[None]] = nullcontext,
        second_look: SecondLook | None = None,
    ) -> None:
        self._second_look = second_look
        self._together = together
        self._lists = lists
        self._verdicts = verdicts
        self._settings = settings
        self._clock = clock
        self._user_content = user_content or UserContentHosts(())

    def looked_at(self, page: Page, classification: Classification) -> Classification:
        """Returns the classifier's verdict on a page after the second look, as it is to be learned.

        Raises:
            StoreError: the database refuses.
        """
        return classification if self._second_look is None else self._second_look.look(page, classification)

    def learn(
        self,
        page: Page,
        classification: Classification,
        *,
        block: bool = True,
        by_hand: bool = False,
        counts: bool = True,
    ) -> LearnedEntry:
        """Records the verdict with its evidence and puts the page on its list.

        After a redirect both URLs are listed, the one that was requested and the one that answered: the second is what other
        pages link to. An address that a reviewer confirmed as harmful stays blocked for as long as that decision holds, whatever
        its page contains by now: a classification never overrides a manual verdict.

        Args:
            page: what was judged.
            classification: the verdict.
            block: whether a harmful page is blocked at once; otherwise it is among the known pages until a reviewer decides.
            by_hand: the verdict is manual.
            counts: whether it may count for the page's host; else it does only where the same text counted before.

        Returns:
            The entry of the URL that was requested.

        Raises:
            StoreError: it could not be written. The verdict may be recorded already; learning the page again makes it whole.
        """
        now = self._clock()
        lesson = self._lesson(page, classification, now, block=block, counts=counts and not by_hand)
        allowed = by_hand and not classification.harmful  # by a newer word, about the same content
        kept = self._write((lesson,), now, also_confirmed=allowed)
        return (lesson.entries | kept)[lesson.key]

    def learn_all(self, judged: Sequence[tuple[Page, Classification]]) -> None:
        """Learns several pages as `learn` does by default, in one transaction: it costs a third.

        Raises:
            StoreError: they could not be written. Learning them again, together or one by one, makes it whole.
        """
        now = self._clock()
        self._write([self._lesson(page, classification, now, block=True) for page, classification in judged], now)

    def _lesson(self, page: Page, classification: Classification, now: float, *, block: bool, counts: bool = True) -> _Lesson:
        asked = parse_url(page.url)
        answered = asked if page.final_url == page.url else parse_url(page.final_url)
        urls = {url.text: url for url in (asked, answered)}
        entries = {url.key: self._entry(url, classification, now, block=block) for url in reversed(urls.values())}
        # Not the requested URL, which may be a redirect that anyone can write; and the client chooses a query.
        # Nor a doubtful page, which is no harmless one: it would make the next page of its host doubtful.
        counts = counts and not page.secondhand and not answered.query and not classification.doubt
        counting = answered.text if counts else ""
        return _Lesson(asked.key, classification, tuple(urls), counting, entries)

    def _write(self, lessons: Sequence[_Lesson], now: float, *, also_confirmed: bool = False) -> dict[str, LearnedEntry]:
        """Writes lessons. Returns the entries that replace theirs: a reviewer confirmed them."""

        def stands(entry: LearnedEntry) -> bool:
            return not also_confirmed and is_confirmed(entry) and entry.expires_at > now

        verdicts = {text: lesson.classification for lesson in lessons for text in lesson.urls}
        entries = {key: entry for lesson in lessons for key, entry in lesson.entries.items()}
        with self._together():
            self._verdicts.record_all(verdicts, now, frozenset(lesson.counting for lesson in lessons))
            kept = self._lists.put_learned(list(entries.values()), unless=stands)
        return {entry.key: entry for entry in kept}

    def learn_host(self, page: Page, refused: Callable[[str], bool] = lambda _: False) -> LearnedEntry | None:
        """Lists the whole host of a harmful page when enough of its pages are harmful, and most of those that were judged.

        Pages count that the crawler fetched, by their texts and their paths, so that one page under many addresses is one page.
        Never for hosts with content of their users, for addresses without a name, or when `learn.domains` is off.

        Args:
            page: the page that was just learned.
            refused: returns whether a reviewer rejected this list key.

        Returns:
            The new entry (not put on the list when `learn.domains` is `review`), `None` when there is none.

        Raises:
            StoreError: the database refuses.
        """
        settings = self._settings
        host = parse_url(page.final_url).host
        if settings.domains is DomainGrowth.OFF or is_ip_literal(host) or self._user_content.holds(host):
            return None
        pages = self._verdicts.host_pages(host)
        harmful = sum(pages.harmful.values())
        if harmful < settings.domain_pages or harmful < settings.domain_share * pages.pages:
            return None
        category = max(pages.harmful, key=lambda name: (pages.harmful[name], name))
        key = domain_key(host)
        if refused(key) or any(entry.action is ListAction.BLOCK for entry in self._lists.find_learned((key,))):
            return None
        now = self._clock()
        detail = f"{harmful} of {pages.pages} pages of {host} are harmful, most of them {category}"
        until = now + settings.block_days * _DAY_S
        entry = LearnedEntry(key, ListAction.BLOCK, category, f"http://{host}/", detail, now, until)
        if settings.domains is DomainGrowth.BLOCK:
            self._lists.put_learned((entry,))
            if refused(key):  # while it was written
                self._lists.remove_learned((key,))
                return None
        return entry

    def _entry(self, url: Url, classification: Classification, now: float, *, block: bool) -> LearnedEntry:
        blocks = classification.harmful and block
        days = self._settings.block_days if classification.harmful else self._settings.allow_days
        waiting = ""
        if classification.harmful and not block:
            waiting = f"not blocked, waits for a person: {classification.category}, "
        elif classification.doubt:
            waiting = f"not blocked, in doubt: {classification.doubt}, "
        return LearnedEntry(
            key=url.key,
            action=ListAction.BLOCK if blocks else ListAction.ALLOW,
            category=classification.category if blocks else "",
            url=url.text,
            detail=f"{waiting}{classification.summary()}",
            created_at=now,
            expires_at=now + days * _DAY_S,
            certainty=None if classification.certainty is None else round(classification.certainty, 4),
        )


def is_confirmed(entry: LearnedEntry) -> bool:
    """Returns whether a reviewer approved that this URL is blocked."""
    return entry.action is ListAction.BLOCK and entry.detail.endswith(CONFIRMED)

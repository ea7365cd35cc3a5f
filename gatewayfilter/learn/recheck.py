"""Learned entries to judge again: those that expired, and all that block when the words have changed."""

from itertools import islice
from typing import Final

from gatewayfilter.interfaces import CrawlRequest, ListStore, Priority
from gatewayfilter.model import ListAction

MOST_LEARNED: Final = 500_000
"""Most entries of the learned lists: a public site can have as many of its pages judged as clients request."""


def recheck_offers(lists: ListStore, now: float, limit: int = 1000) -> list[CrawlRequest]:
    """Removes expired entries from the lists, through the change feed, and returns the blocked pages, to be judged again.

    A harmless page is not offered: the next visit makes it unknown and brings it to the frontier by itself. So does, should
    this process die before the offers are in the frontier, the next visit to a blocked one.

    Args:
        lists: where the entries are.
        now: Unix seconds.
        limit: most entries taken; call again for more.

    Raises:
        StoreError: the lists could not be read or written.
    """
    expired = lists.expired_learned(now, limit)
    lists.remove_learned([entry.key for entry in expired])
    return [CrawlRequest(entry.url, Priority.RECHECK) for entry in expired if entry.action is ListAction.BLOCK]


def forget_surplus(lists: ListStore, most: int = MOST_LEARNED, limit: int = 1000) -> int:
    """Takes entries off the lists, through the change feed, when they hold too many: first those that expire first.

    Harmless pages go before harmful ones, as they are listed for a shorter time, and manual verdicts stay longest. The next
    visit to such a page makes it unknown, and has it judged again.

    Args:
        lists: where the entries are.
        most: may stay.
        limit: most entries taken; call again for more.

    Returns:
        How many were taken.

    Raises:
        StoreError: the lists could not be read or written.
    """
    return lists.remove_learned([entry.key for entry in lists.surplus_learned(most, limit)])


def rejudge_offers(lists: ListStore, limit: int) -> list[CrawlRequest]:
    """Returns the pages that learned entries block, to be judged by other words; they stay blocked meanwhile.

    A host that is listed whole is not one of them: its pages are.

    Args:
        lists: where the entries are.
        limit: most offers; what is left is judged again when it expires.

    Raises:
        StoreError: the lists could not be read.
    """
    blocked = (entry for entry in lists.learned() if entry.action is ListAction.BLOCK and not entry.key.startswith("."))
    return [CrawlRequest(entry.url, Priority.RECHECK) for entry in islice(blocked, limit)]

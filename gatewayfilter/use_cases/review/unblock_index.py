"""The index of users' requests to unblock pages, by the review tasks about the same pages."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from gatewayfilter.model import ReviewKind, ReviewTask
from gatewayfilter.urls import domain_key, parse_url

if TYPE_CHECKING:
    from gatewayfilter.interfaces import UnblockRequest, UnblockRequests


class UnblockIndex:
    """The open requests to unblock a page, by the list keys of its URL and of its host."""

    def __init__(self, unblock: UnblockRequests) -> None:
        self._by_key: dict[str, list[UnblockRequest]] = defaultdict(list)
        for request in unblock.open_requests():
            url = parse_url(request.url)
            self._by_key[url.key].append(request)
            self._by_key[domain_key(url.host)].append(request)

    def of(self, task: ReviewTask) -> list[UnblockRequest]:
        """Returns the requests about a task's page, or about any page of a task's host, the newest first."""
        return self._by_key.get(task.key, [])

    def times(self, task: ReviewTask) -> int:
        """Returns how often users requested the page."""
        return sum(request.times for request in self.of(task))


def complete_requests(unblock: UnblockRequests, index: UnblockIndex, task: ReviewTask) -> int:
    """Closes the requests that a decision on a page has answered. Returns how many.

    A decision on a host answers none: its pages are judged one by one.
    """
    if task.kind is not ReviewKind.PAGE:
        return 0
    return sum(unblock.complete(request.request_id) is not None for request in index.of(task))

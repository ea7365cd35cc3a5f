"""The errors of a fetch, by what happens to the URL next.

=============================  =========================================================================
error                          what the worker does with the URL
=============================  =========================================================================
`HostBusyError`                back to the queue until the host's delay is over; not a failed try
`UnreachableError`             another try later, then the dead letters
`RefusedError`                 rests: the policy and robots.txt change seldom
`ForbiddenAddressError`        rests likewise
any other `FetchError`         rests: the answer is broken, and another try at once would fail as well
=============================  =========================================================================
"""

from gatewayfilter.errors import FetchError, ForbiddenAddressError


class UnreachableError(FetchError):
    """The origin did not answer, or not yet: worth another try.

    Attributes:
        retry_after_s: the origin's Retry-After, 0 without one.
    """

    def __init__(self, message: str, retry_after_s: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class HostBusyError(UnreachableError):
    """The host may not be requested now, but in `retry_after_s`."""


class BadAnswerError(FetchError):
    """The origin answered, but not in a way that can be used: broken HTTP, a bomb, a redirect loop, a bad certificate."""


class RefusedError(FetchError):
    """The safety policy or the site's robots.txt refuses the URL."""


def is_retryable(error: FetchError) -> bool:
    """Returns whether another try may succeed."""
    return isinstance(error, UnreachableError)


def is_refusal(error: FetchError) -> bool:
    """Returns whether the crawler refused, rather than the origin failed."""
    return isinstance(error, (RefusedError, ForbiddenAddressError))

"""Why a page was not fetched, in the terms that decide what happens to its URL next.

=============================  =========================================================================
error                          what the worker does with the URL
=============================  =========================================================================
`HostBusyError`                back to the queue until the host may be asked again; not a failed try
`UnreachableError`             another try later, then the dead letters
`RefusedError`                 rests: the policy or robots.txt will not say otherwise soon
`ForbiddenAddressError`        rests likewise
any other `FetchError`         rests: the answer is broken, and asking at once will not mend it
=============================  =========================================================================
"""

from gatewayfilter.errors import FetchError, ForbiddenAddressError


class UnreachableError(FetchError):
    """The origin did not answer, or not yet: worth another try.

    Attributes:
        retry_after_s: what the origin asked for, 0 when it asked for nothing.
    """

    def __init__(self, message: str, retry_after_s: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class HostBusyError(UnreachableError):
    """The host may not be asked now; `retry_after_s` says when."""


class BadAnswerError(FetchError):
    """The origin answered, but not in a way that can be used: broken HTTP, a bomb, a redirect loop, a bad certificate."""


class RefusedError(FetchError):
    """The safety policy or the site's robots.txt says no."""


def is_retryable(error: FetchError) -> bool:
    """Tells whether another try may go better."""
    return isinstance(error, UnreachableError)


def is_refusal(error: FetchError) -> bool:
    """Tells whether we refused, rather than the origin failed."""
    return isinstance(error, (RefusedError, ForbiddenAddressError))

"""Failures of a page as they travel between modules, and the exceptions that they stand for."""

from typing import Final

from gatewayfilter.crawl.modules.messages import Failure
from gatewayfilter.crawl.net.fetch_errors import BadAnswerError, HostBusyError, RefusedError, UnreachableError
from gatewayfilter.errors import FetchError, ForbiddenAddressError, UrlError

_KINDS: Final[dict[str, type[FetchError | UrlError]]] = {
    "busy": HostBusyError,
    "unreachable": UnreachableError,
    "refused": RefusedError,
    "forbidden": ForbiddenAddressError,
    "answer": BadAnswerError,
    "url": UrlError,
}
"""Kind → exception, the more special ones first."""
CRASHED: Final = "crashed"


def failure_of(error: Exception) -> Failure:
    """Returns what an exception is sent as. The messages of these errors quote nothing that an origin could have written."""
    for kind, known in _KINDS.items():
        if isinstance(error, known):
            return Failure(kind, str(error), getattr(error, "retry_after_s", 0.0))
    if isinstance(error, FetchError):
        return Failure("answer", str(error))
    return Failure(CRASHED, type(error).__name__)


def error_of(failure: Failure) -> Exception | None:
    """Returns the exception for which a failure stands, `None` where a module failed."""
    known = _KINDS.get(failure.kind)
    if known is not None and issubclass(known, UnreachableError):
        return known(failure.reason, failure.wait_s)
    return known(failure.reason) if known is not None else None

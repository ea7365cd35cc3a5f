"""The errors that users and callers can meet. Foreign errors are translated into these where the library is called."""

from typing import Final

EXHAUSTED: Final = (OSError, MemoryError, RuntimeError)
"""What work may fail of where the machine has no descriptor, no memory, no thread (`RuntimeError`) or no space left.

Work that is repeated goes on after it.
"""


class GatewayFilterError(Exception):
    """Something that has one clear sentence for the user; a command answers with it and exit code 2."""


class MissingError(GatewayFilterError):
    """Something that was asked for by its name or number and is not there; a command answers with exit code 1."""


class ConflictError(GatewayFilterError):
    """Something that was changed since it was read: the edit would undo somebody else's."""


class UrlError(GatewayFilterError, ValueError):
    """A URL or host that cannot be read as one."""


class ConfigError(GatewayFilterError):
    """A setting that is unknown, of the wrong type or out of range."""


class ListError(GatewayFilterError):
    """A list that cannot be used as a whole; single bad lines are counted, not raised."""


class UnknownCategoryError(ListError):
    """A category that does not exist, most likely misspelt; it can be made on purpose."""


class RuleError(GatewayFilterError, ValueError):
    """One rule or pattern that cannot be read."""


class BroadRuleError(RuleError):
    """A pattern that is usually too broad, such as a whole top-level domain; it can be added on purpose."""


class UnsupportedError(RuleError):
    """The rule is valid, but does what a proxy cannot or must not; `name` is what it is counted under."""

    def __init__(self, name: str) -> None:
        super().__init__(f"not supported: {name}")
        self.name = name


class PolicyError(GatewayFilterError):
    """A client, group, policy, schedule or pause that cannot be as requested."""


class MissingItemError(MissingError, PolicyError):
    """There is no such client, group, policy, schedule, quota, service or request."""


class AccountError(GatewayFilterError):
    """An account, password or token of the dashboard that cannot be as requested."""


class MissingAccountError(MissingError, AccountError):
    """There is no such account or token."""


class UndoError(ConflictError):
    """A change that cannot be taken back, with the reason."""


class MissingChangeError(MissingError, UndoError):
    """There is no such change, or none that can be taken back."""


class SourceError(GatewayFilterError):
    """A subscription that cannot be added or fetched."""


class MissingSourceError(MissingError, SourceError):
    """There is no such subscription."""


class FleetError(GatewayFilterError):
    """What a publisher or a follower of a fleet cannot do, or refuses."""


class MissingFollowerError(MissingError, FleetError):
    """There is no such follower."""


class SnapshotError(GatewayFilterError):
    """A snapshot file that is damaged, of another version, or cannot be written."""


class SnapshotVersionError(SnapshotError):
    """A snapshot of another version of the format: another version of the program can use it."""


class StoreError(GatewayFilterError):
    """The database cannot be opened, read or written."""


class StoreUnavailableError(StoreError):
    """The database is locked, full, damaged or away: the same write may succeed later."""


class BackupError(GatewayFilterError):
    """A backup that cannot be written, read or restored."""


class InspectError(GatewayFilterError):
    """A page could not be looked at in time."""


class FetchError(GatewayFilterError):
    """A page that could not be fetched."""


class ForbiddenAddressError(FetchError):
    """The crawler was asked to connect to an address it must never reach."""


class ClassifyError(GatewayFilterError):
    """A word list or page that cannot be used for classification."""


class MissingRuleError(MissingError, ClassifyError):
    """There is no such extraction rule, or no such version of it."""


class ReviewError(GatewayFilterError):
    """A task of a person cannot be decided so."""


class MissingTaskError(MissingError, ReviewError):
    """There is no such task."""


class StartupError(GatewayFilterError):
    """The filter cannot start: a port in use, a missing certificate, another instance on the same state folder."""


class GatewayError(GatewayFilterError):
    """The firewall or the kernel's forwarding cannot be set as asked; what had been set is taken back."""


class NotifyError(GatewayFilterError):
    """A message to the operator could not be sent; without secrets."""

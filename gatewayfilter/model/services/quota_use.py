"""The use of quotas: minutes in which a client used a service or category, and their sums of a day."""

from typing import NamedTuple


class QuotaUse(NamedTuple):
    """A minute of the clock in which a quota was used.

    Attributes:
        client: `key_of_client` of the client.
        quota: name of the quota.
        minute: Unix seconds divided by 60, rounded down.
    """

    client: str
    quota: str
    minute: int


class QuotaSum(NamedTuple):
    """The minutes of a quota that a client has used on the current day of the quota's time zone.

    Attributes:
        client: as in `QuotaUse`.
        quota: likewise.
        used: minutes.
    """

    client: str
    quota: str
    used: int


class QuotasUsed(NamedTuple):
    """Quotas that a request uses.

    Attributes:
        client: `key_of_client` of its client.
        quotas: names.
    """

    client: str
    quotas: tuple[str, ...]

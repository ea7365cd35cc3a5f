"""What a client has left of its quotas, as sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewayfilter.cli.ui.dates import show_day
from gatewayfilter.cli.ui.output import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gatewayfilter.use_cases.network_facts import QuotaLeft


def show_left(quotas: Sequence[QuotaLeft]) -> None:
    """Prints what a client has left of its quotas, if there are any."""
    for one in quotas:
        again = f"; again from {show_day(one.until)}" if one.until is not None else ""
        say(f"quota {one.quota}: {one.used} of {one.minutes} minutes of {one.target} used today{again}")

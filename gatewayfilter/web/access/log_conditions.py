"""Conditions on the log as parameters of an address, for pages and the API alike."""

from typing import Annotated

from fastapi import Depends, Query

from gatewayfilter.use_cases.traffic.log_filters import LogFilters

_LONGEST = 200


def read_conditions(  # noqa: PLR0913, PLR0917  one for each condition
    q: Annotated[str, Query(max_length=_LONGEST, description="Part of the URL.")] = "",
    outcome: Annotated[str, Query(max_length=_LONGEST, description="`blocked`, `allowed`, `learned` or `unknown`.")] = "",
    client: Annotated[str, Query(max_length=_LONGEST, description="Name, address or `user:NAME` of a client.")] = "",
    group: Annotated[str, Query(max_length=_LONGEST, description="Clients of this group.")] = "",
    category: Annotated[str, Query(max_length=_LONGEST, description="Code of a category.")] = "",
    reason: Annotated[str, Query(max_length=_LONGEST, description="Reason code, such as `adblock`.")] = "",
    site: Annotated[str, Query(max_length=_LONGEST, description="A host, with those below it.")] = "",
    list: Annotated[str, Query(max_length=_LONGEST, description="The list that decided.")] = "",  # noqa: A002  its name in addresses
    since: Annotated[str, Query(max_length=_LONGEST, description="From then on: `today`, `20:00`, `7d`, `2030-01-31`.")] = "",
    until: Annotated[str, Query(max_length=_LONGEST, description="Before then, as `since`.")] = "",
) -> LogFilters:
    """Returns the conditions of a request."""
    return LogFilters(q, outcome, client, group, category, reason, site, list, since, until)


Conditions = Annotated[LogFilters, Depends(read_conditions)]
"""The conditions of a request on the log."""

"""Options that hold a resource type."""

from __future__ import annotations

import click

from gatewayfilter.model import ResourceType
from gatewayfilter.model.values.resource_types import TYPES_BY_NAME


def type_option(context: click.Context, parameter: click.Parameter, value: str) -> ResourceType:
    """Reads an option that holds a resource type."""
    del context, parameter
    kind = TYPES_BY_NAME.get(value.strip().lower())
    if kind is None:
        raise click.BadParameter(f"{value!r} is none of {', '.join(kind.value for kind in ResourceType)}")
    return kind

"""Names of resource types, with the aliases of other programs."""

from __future__ import annotations

import click

from gatewayfilter.model import ResourceType

_OTHER_NAMES = {
    "main_frame": ResourceType.DOCUMENT,
    "doc": ResourceType.DOCUMENT,
    "sub_frame": ResourceType.SUBDOCUMENT,
    "frame": ResourceType.SUBDOCUMENT,
    "iframe": ResourceType.SUBDOCUMENT,
    "css": ResourceType.STYLESHEET,
    "style": ResourceType.STYLESHEET,
    "js": ResourceType.SCRIPT,
    "img": ResourceType.IMAGE,
    "imageset": ResourceType.IMAGE,
    "audio": ResourceType.MEDIA,
    "video": ResourceType.MEDIA,
    "object_subrequest": ResourceType.OBJECT,
    "xhr": ResourceType.XMLHTTPREQUEST,
    "fetch": ResourceType.XMLHTTPREQUEST,
    "beacon": ResourceType.PING,
}
BY_NAME = {**{kind.value: kind for kind in ResourceType}, **_OTHER_NAMES}
"""Every accepted name, lower case: those of the WebRequest API, and what else is in use for them."""


def type_option(context: click.Context, parameter: click.Parameter, value: str) -> ResourceType:
    """Reads an option that holds a resource type."""
    del context, parameter
    kind = BY_NAME.get(value.strip().lower())
    if kind is None:
        raise click.BadParameter(f"{value!r} is none of {', '.join(kind.value for kind in ResourceType)}")
    return kind

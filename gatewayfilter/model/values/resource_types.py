"""Names of resource types, with the aliases of other programs."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from gatewayfilter.model.decision import ResourceType

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
TYPES_BY_NAME: Final[Mapping[str, ResourceType]] = MappingProxyType(
    {**{kind.value: kind for kind in ResourceType}, **_OTHER_NAMES}
)
"""Every accepted name, lower case: those of the WebRequest API, and what else is in use for them."""

"""Settings of section `[filter]`."""

from enum import StrEnum
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import field_validator

from gatewayfilter.settings.base import Section


class CosmeticScope(StrEnum):
    """What is hidden on pages."""

    OFF = "off"
    SPECIFIC = "specific"
    ALL = "all"


class FilterSettings(Section):
    """What is blocked."""

    disabled_categories: tuple[str, ...] = ()
    """Categories that do not block, although a list or the classifier names them."""
    timezone: str = ""
    """The time zone of days, times on pages, and schedules that name none, such as `Europe/Berlin`; empty for this machine's."""
    cosmetic: CosmeticScope = CosmeticScope.SPECIFIC
    """What Adblock rules hide on pages: nothing, what names the site or is of a short list, or all (EasyList: +212 kB)."""
    replace: bool = True
    """Whether Adblock rules may change the text of responses (`$replace`) and take elements out of the HTML (`##^`)."""

    @field_validator("timezone")
    @classmethod
    def _is_zone(cls, value: str) -> str:
        try:
            if value:
                ZoneInfo(value)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise ValueError("must be the name of a time zone, such as Europe/Berlin") from error
        return value

    @field_validator("cosmetic", mode="before")
    @classmethod
    def _was_a_switch(cls, value: object) -> object:
        """Takes the words of earlier releases: on for all rules, off for none."""
        return {"true": CosmeticScope.ALL, "false": CosmeticScope.OFF}.get(str(value).lower(), value)

"""Numbers, times and sizes as a language writes them."""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cached_property
from typing import Final

from babel import Locale, localedata
from babel.core import get_global
from babel.dates import format_date, format_datetime, format_skeleton, format_time, format_timedelta
from babel.numbers import format_decimal, format_percent

from gatewayfilter.web.rendering.catalogs import LANGUAGES, LOCALES

_TYPED: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?", re.ASCII)
_SOON_S: Final = 20 * 3600.0
_INHERITED: Final = {"en_GB": ("root", "en", "en_001"), "zh_Hans_CN": ("root", "zh", "zh_Hans")}
_UNUSED: Final = frozenset(
    {
        "currency_names", "currency_names_plural", "currency_symbols", "currency_unit_patterns", "interval_formats", "languages",
        "list_patterns", "meta_zones", "scripts", "territories", "time_zones", "unit_display_names", "variants",
    }
)  # fmt: skip
"""Parts of a locale's data that no format here uses."""
_UNITS: Final = ("B", "KB", "MB", "GB", "TB")


class Formats:
    """The formats of one language, for templates.

    Args:
        language: `en` or `zh`.
        zone: in which times are shown; the machine's own by default.
        small: drops what Babel loads for the language and is not used here: 2 MB. For a process that uses Babel for nothing else.
    """

    def __init__(self, language: str, zone: tzinfo | None = None, *, small: bool = False) -> None:
        self._language = language
        self._zone = zone
        self._small = small

    @cached_property
    def _locale(self) -> Locale:
        locale = Locale.parse(LOCALES[self._language])
        return _without_unused(locale) if self._small else locale

    def number(self, value: float) -> str:
        """Returns a number with its separators: `41,200`."""
        return format_decimal(value, locale=self._locale)

    def percent(self, value: float) -> str:
        """Returns a share from 0 to 1 in percent; below ten with a decimal: `7.6%`."""
        return format_percent(value, "#,##0.0%" if 0 < value < 0.1 else "#,##0%", locale=self._locale)

    def size(self, value: float) -> str:
        """Returns a number of bytes: `12.4 MB`."""
        unit = 0
        while value >= 1000 and unit < len(_UNITS) - 1:
            value, unit = value / 1000, unit + 1
        return f"{format_decimal(value, '#,##0.#' if unit else '#,##0', locale=self._locale)} {_UNITS[unit]}"

    def moment(self, at: float) -> str:
        """Returns date and time to the second, for Unix seconds."""
        return format_datetime(self._local(at), "medium", tzinfo=self._zone, locale=self._locale)

    def minute(self, at: float) -> str:
        """Returns date and time to the minute, for Unix seconds."""
        local = self._local(at)
        return f"{format_date(local, 'medium', locale=self._locale)} {format_time(local, 'HH:mm', locale=self._locale)}"

    def day(self, at: float) -> str:
        """Returns the date of Unix seconds."""
        return format_date(self._local(at), "medium", locale=self._locale)

    def clock(self, at: float) -> str:
        """Returns the time of day of Unix seconds: `20:15:03`."""
        return format_time(self._local(at), "HH:mm:ss", locale=self._locale)

    def until(self, at: float, now: float) -> str:
        """Returns a time of the next days to the minute: `20:15`; with the weekday when it is not within 20 hours."""
        skeleton = "Hm" if at - now < _SOON_S else "EHm"
        return format_skeleton(skeleton, self._local(at), tzinfo=self._zone, locale=self._locale)

    def ago(self, at: float, now: float) -> str:
        """Returns how long ago or ahead Unix seconds are: `3 minutes ago`."""
        return format_timedelta(timedelta(seconds=at - now), add_direction=True, format="long", locale=self._locale)

    def duration(self, seconds: float) -> str:
        """Returns a span of time: `3 hours`."""
        return format_timedelta(timedelta(seconds=seconds), threshold=1.2, format="long", locale=self._locale)

    def iso(self, at: float) -> str:
        """Returns Unix seconds for the `datetime` attribute of `<time>`."""
        return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")

    def typed_time(self, text: str) -> str:
        """Returns a text where a field of date and time may have it as its value, else `""`: browsers complain about others."""
        return text if _TYPED.fullmatch(text) else ""

    def _local(self, at: float) -> datetime:
        return datetime.fromtimestamp(at, UTC).astimezone(self._zone)


def _without_unused(locale: Locale) -> Locale:
    """Drops what Babel has loaded for a locale and `Formats` does not use."""
    for name in (*_INHERITED[str(locale)], str(locale)):
        data = localedata.load(name)
        for part in _UNUSED & data.keys():
            del data[part]
    for found in (get_global("likely_subtags"), get_global("territory_currencies"), get_global("territory_languages")):
        if isinstance(found, dict):
            for key in found.keys() - LANGUAGES.keys():  # the data of another language may be loaded later
                del found[key]
    return locale

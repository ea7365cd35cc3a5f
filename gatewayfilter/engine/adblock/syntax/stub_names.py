"""Names of stub resources: the names that lists use, mapped to canonical names (`gatewayfilter/proxy/pages/stubs/`)."""

from collections.abc import Mapping
from types import MappingProxyType

from gatewayfilter.errors import RuleError

# Canonical name → names in uBlock Origin, AdGuard and Adblock Plus; the canonical name is accepted too.
_SPELLINGS = {
    "noopjs": "noop.js blank-js abp-resource:blank-js",
    "nooptext": "noop.txt blank-text abp-resource:blank-text",
    "noopcss": "noop.css blank-css abp-resource:blank-css",
    "noopframe": "noop.html noophtml blank-html abp-resource:blank-html",
    "noopjson": "noop.json",
    "empty": "",
    "noop-0.1s.mp3": "noopmp3-0.1s blank-mp3 abp-resource:blank-mp3",
    "noop-0.5s.mp3": "noopmp3-0.5s",
    "noop-1s.mp4": "noopmp4-1s blank-mp4 abp-resource:blank-mp4",
    "1x1.gif": "1x1-transparent.gif 1x1-transparent-gif abp-resource:1x1-transparent-gif",
    "2x2.png": "2x2-transparent.png 2x2-transparent-png abp-resource:2x2-transparent-png",
    "3x2.png": "3x2-transparent.png 3x2-transparent-png abp-resource:3x2-transparent-png",
    "32x32.png": "32x32-transparent.png 32x32-transparent-png abp-resource:32x32-transparent-png",
    "noopvast-2.0": "noop-vast2.xml noop-vast-2.0",
    "noopvast-3.0": "noop-vast3.xml noop-vast-3.0",
    "noopvast-4.0": "noop-vast4.xml noop-vast-4.0",
    "noopvmap-1.0": "noop-vmap1.0.xml noop-vmap1.xml noop-vmap-1.0",
    "click2load": "click2load.html",
    "google-analytics_analytics.js": "google-analytics google-analytics.com/analytics.js",
    "googletagmanager_gtm.js": "googletagmanager.com/gtm.js googletagmanager-gtm",
    "google-analytics_ga.js": "google-analytics-ga google-analytics.com/ga.js",
    "google-analytics_cx_api.js": "google-analytics.com/cx/api.js",
    "google-analytics_inpage_linkid.js": "google-analytics.com/inpage_linkid.js",
    "googlesyndication_adsbygoogle.js": "googlesyndication-adsbygoogle googlesyndication.com/adsbygoogle.js",
    "googletagservices_gpt.js": "googletagservices-gpt googletagservices.com/gpt.js",
    "google-ima.js": "google-ima3 google-ima",
    "doubleclick_instream_ad_status.js": "doubleclick.net/instream/ad_status.js",
    "amazon_ads.js": "amazon-adsystem.com/aax2/amzn_ads.js",
    "amazon_apstag.js": "amazon-apstag",
    "ampproject_v0.js": "ampproject.org/v0.js",
    "chartbeat.js": "static.chartbeat.com/chartbeat.js",
    "scorecardresearch_beacon.js": "scorecardresearch.com/beacon.js",
    "fingerprint2.js": "fingerprintjs2",
    "fingerprint3.js": "fingerprintjs3",
    "prebid-ads.js": "prebid-ads prebid",
    "popads.js": "popads.net.js popads prevent-popads-net",
    "popads-dummy.js": "popads-dummy",
    "nobab.js": "bab-defuser.js prevent-bab nobab",
    "nobab2.js": "nobab2",
    "nofab.js": "fuckadblock.js-3.2.0 prevent-fab-3.2.0 nofab",
    "noeval.js": "noeval",
    "noeval-silent.js": "silent-noeval.js silent-noeval",
    "hd-main.js": "hd-main",
    "outbrain-widget.js": "widgets.outbrain.com/outbrain.js",
    "addthis_widget.js": "addthis.com/addthis_widget.js",
    "ligatus_angular-tag.js": "ligatus.com/*/angular-tag.js",
    "mxpnl_mixpanel.js": "mxpnl-mixpanel",
    "monkeybroker.js": "d3pkae9owd2lcf.cloudfront.net/mb105.js",
    "window.open-defuser.js": "nowoif",
    "sensors-analytics.js": "sensors-analytics",
    "nitropay_ads.js": "nitropay-ads",
    "ati-smarttag.js": "ati-smarttag",
    "gemius.js": "gemius",
    "matomo.js": "matomo",
    "metrika-yandex-tag.js": "metrika-yandex-tag",
    "metrika-yandex-watch.js": "metrika-yandex-watch",
    "naver-wcslog.js": "naver-wcslog",
    "pardot-1.0.js": "pardot-1.0",
    "didomi-loader.js": "didomi-loader",
}

STUB_NAMES: Mapping[str, str] = MappingProxyType(
    {spelling: name for name, spellings in _SPELLINGS.items() for spelling in (name, *spellings.split())}
)
"""Every name of every stub → its canonical name."""

NO_STUB = "none"
"""A redirect to this name is a plain block."""


def read_stub(value: str) -> tuple[str, int]:
    """Returns the canonical name of the stub in `redirect=` ("" for `none`), and the redirect's priority.

    Raises:
        RuleError: there is no such stub.
    """
    name, colon, number = value.rpartition(":")
    priority = 0
    if colon and number.removeprefix("-").isdecimal() and number.isascii() and len(number) <= 9:
        priority = int(number)
    else:
        name = value
    found = "" if name == NO_STUB else STUB_NAMES.get(name)
    if found is None:
        raise RuleError(f"unknown stub {name[:100]!r}")
    return found, priority


def is_stub(value: str) -> bool:
    """Returns whether `redirect=` may have this value."""
    try:
        read_stub(value)
    except RuleError:
        return False
    return True

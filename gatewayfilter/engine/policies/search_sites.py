"""Search engines and video sites: their hosts, where a request holds what is searched, and how their SafeSearch is enforced.

Enforcement is by what each of them documents: a host whose addresses serve filtered results only, to which the name is led as a
DNS resolver would (the certificate stays that of the name); besides, parameters, cookies and header fields that switch the filter
on, which hold where the connection does not end at these addresses (a parent proxy, an older connection).

Source: Google Search Help "Lock SafeSearch" (forcesafesearch.google.com; `safe=active`, `ssui=on` as Chromium's
ForceGoogleSafeSearch); Bing "Block adult content" (strict.bing.com, `adlt=strict`); DuckDuckGo "Safe Search"
(safe.duckduckgo.com, `kp=1`); Yandex "Family search" (213.180.193.56); Ecosia (strict-safe-search.ecosia.org); Brave
(safesearch.brave.com, `safesearch=strict`); Google Workspace "Manage YouTube settings" (restrict.youtube.com,
restrictmoderate.youtube.com, `YouTube-Restrict`); RFC 8674 (`Prefer: safe`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache

from gatewayfilter.model import Enforcement, SearchEngine, YouTubeMode


@dataclass(frozen=True, slots=True)
class SearchSite:
    """A site that people search.

    Attributes:
        name: for people.
        hosts: canonical, all that answer searches.
        parameters: lower-case names of the parameters of a query or form that hold what is searched.
        paths: beginnings of paths after which the rest of the path is what is searched.
        json_path: path to which searches are posted as JSON, `""` for none; `json_field` holds the text.
        old_charset: in which texts may be that are no UTF-8, `""` for none.
    """

    name: str
    hosts: tuple[str, ...]
    parameters: frozenset[str] = frozenset({"q"})
    paths: tuple[str, ...] = ()
    json_path: str = ""
    json_field: str = "query"
    old_charset: str = ""


_GOOGLE_DOMAINS = (
    "ad ae al am as at az ba be bf bg bi bj bs bt by ca cat cd cf cg ch ci cl cm cn co co.ao co.bw co.ck co.cr co.id co.il co.in "
    "co.jp co.ke co.kr co.ls co.ma co.mz co.nz co.th co.tz co.ug co.uk co.uz co.ve co.vi co.za co.zm co.zw com com.af com.ag "
    "com.ai com.ar com.au com.bd com.bh com.bn com.bo com.br com.by com.bz com.co com.cu com.cy com.do com.ec com.eg com.et "
    "com.fj com.gh com.gi com.gt com.hk com.jm com.kh com.kw com.lb com.ly com.mm com.mt com.mx com.my com.na com.nf com.ng "
    "com.ni com.np com.om com.pa com.pe com.pg com.ph com.pk com.pr com.py com.qa com.sa com.sb com.sg com.sl com.sv com.tj "
    "com.tr com.tw com.ua com.uy com.vc com.vn cv cz de dj dk dm dz ee es fi fm fr ga ge gg gl gm gp gr gy hn hr ht hu ie im iq "
    "is it je jo kg ki kz la li lk lt lu lv md me mg mk ml mn ms mu mv mw ne nl no nr nu pl pn ps pt ro rs ru rw sc se sh si sk "
    "sm sn so sr st td tg tk tl tm tn to tt us vg vu ws"
)
_GOOGLE_NAMES = ("", "www.", "images.", "video.", "m.")
_YANDEX_DOMAINS = (
    "yandex.az yandex.by yandex.co.il yandex.com yandex.com.am yandex.com.ge yandex.com.ru yandex.com.tr yandex.de yandex.ee "
    "yandex.eu yandex.fi yandex.fr yandex.kz yandex.lt yandex.lv yandex.md yandex.net yandex.org yandex.pl yandex.ru yandex.tj "
    "yandex.tm yandex.ua yandex.uz ya.ru xn--d1acpjx3f.xn--p1ai"
)
_WIKIPEDIAS = (
    "en de fr es it pt ru uk pl nl sv da no nn fi is et lv lt cs sk hu ro bg sr hr sl bs mk sq el tr az hy ka he ar fa ur hi bn "
    "ta te ml kn mr gu pa ne si th vi id ms jv tl ko ja zh zh-yue zh-classical zh-min-nan wuu gan ceb war eu ca gl oc br cy ga "
    "gd af sw yo ha zu am kk uz ky tg mn be la eo simple ast arz als nds li"
)

_GOOGLE = SearchSite(
    "Google",
    (
        *(f"{name}google.{domain}" for domain in _GOOGLE_DOMAINS.split() for name in _GOOGLE_NAMES),
        "encrypted.google.com",
        "ipv4.google.com",
        "ipv6.google.com",
        "cse.google.com",
        "forcesafesearch.google.com",
    ),
    frozenset({"q", "as_q", "as_epq", "as_oq", "oq", "query"}),
)
_GOOGLE_OTHERS = SearchSite(
    "Google",
    tuple(f"{name}.google.com" for name in ["news", "scholar", "books", "maps", "play", "suggestqueries", "lens", "clients1"]),
    _GOOGLE.parameters,
)
_BING = SearchSite(
    "Bing",
    tuple(f"{name}bing.com" for name in ("www.", "", "m.", "cn.", "www4.", "edgeservices.", "strict.", "api.")),
    frozenset({"q", "query", "pq"}),
    ("/search/", "/images/search/", "/videos/search/"),
)
_DUCK_ALIASES = ("duck.com", "www.duck.com", "ddg.gg")
"""They only redirect to the main host; its enforced addresses have no certificate for them."""
_DUCKDUCKGO = SearchSite(
    "DuckDuckGo",
    (*(f"{name}duckduckgo.com" for name in ("", "www.", "start.", "html.", "lite.", "links.", "api.", "safe.")), *_DUCK_ALIASES),
    frozenset({"q"}),
    ("/",),
)
_YANDEX = SearchSite(
    "Yandex",
    tuple(f"{name}{domain}" for domain in _YANDEX_DOMAINS.split() for name in ("", "www.", "m.")),
    frozenset({"text", "query"}),
    ("/search/", "/images/search/", "/video/search/"),
)
_ECOSIA = SearchSite("Ecosia", ("www.ecosia.org", "ecosia.org", "ac.ecosia.org"), paths=("/search/",))
_BRAVE = SearchSite("Brave", ("search.brave.com",), paths=("/search/",))
_YOUTUBE = SearchSite(
    "YouTube",
    (
        "www.youtube.com", "m.youtube.com", "youtube.com", "music.youtube.com", "tv.youtube.com", "youtubei.googleapis.com",
        "youtube.googleapis.com", "www.youtube-nocookie.com", "youtube-nocookie.com", "restrict.youtube.com",
        "restrictmoderate.youtube.com",
    ),
    frozenset({"search_query", "q", "query"}),
    ("/hashtag/", "/results/"),
    json_path="/youtubei/v1/search",
)  # fmt: skip
_OTHERS = (
    SearchSite(
        "Baidu",
        (
            "www.baidu.com", "baidu.com", "m.baidu.com", "wap.baidu.com", "image.baidu.com", "images.baidu.com", "v.baidu.com",
            "video.baidu.com", "tieba.baidu.com", "zhidao.baidu.com", "wenku.baidu.com", "news.baidu.com", "baike.baidu.com",
            "suggestion.baidu.com",
        ),
        frozenset({"wd", "word", "kw", "query", "q1", "oq", "bs"}),
        ("/item/",),
        old_charset="gb18030",
    ),
    SearchSite(
        "Sogou", ("www.sogou.com", "m.sogou.com", "pic.sogou.com"), frozenset({"query", "keyword"}), old_charset="gb18030"
    ),
    SearchSite("360", ("www.so.com", "m.so.com", "image.so.com"), old_charset="gb18030"),
    SearchSite(
        "Yahoo",
        ("search.yahoo.com", "images.search.yahoo.com", "video.search.yahoo.com", "search.yahoo.co.jp"),
        frozenset({"p"}),
    ),
    SearchSite("Startpage", ("www.startpage.com", "startpage.com"), frozenset({"query", "q"})),
    SearchSite("Qwant", ("www.qwant.com", "qwant.com", "api.qwant.com")),
    SearchSite(
        "Wikipedia",
        ("www.wikipedia.org", *(f"{code}.{mobile}wikipedia.org" for code in _WIKIPEDIAS.split() for mobile in ("", "m."))),
        frozenset({"search", "q", "srsearch", "gsrsearch", "title"}),
        ("/wiki/special:search/", "/wiki/", "/w/rest.php/v1/search/"),
    ),
)  # fmt: skip

SITES = (_GOOGLE, _GOOGLE_OTHERS, _BING, _DUCKDUCKGO, _YANDEX, _ECOSIA, _BRAVE, _YOUTUBE, *_OTHERS)
"""All sites of which searches are read."""

_ENFORCED = {
    SearchEngine.GOOGLE: (
        _GOOGLE,
        Enforcement("safesearch", "forcesafesearch.google.com", parameters=(("safe", "active"), ("ssui", "on"))),
    ),
    SearchEngine.BING: (
        _BING,
        Enforcement(
            "safesearch",
            "strict.bing.com",
            parameters=(("adlt", "strict"),),
            cookies=(("SRCHHPGUSR", "ADLT=STRICT"),),
            headers=(("prefer", "safe"),),
        ),
    ),
    SearchEngine.DUCKDUCKGO: (
        _DUCKDUCKGO,
        Enforcement("safesearch", "safe.duckduckgo.com", parameters=(("kp", "1"),), cookies=(("p", "1"),)),
    ),
    SearchEngine.YANDEX: (_YANDEX, Enforcement("safesearch", "213.180.193.56", parameters=(("family", "yes"),))),
    SearchEngine.ECOSIA: (_ECOSIA, Enforcement("safesearch", "strict-safe-search.ecosia.org")),
    SearchEngine.BRAVE: (
        _BRAVE,
        Enforcement(
            "safesearch",
            "safesearch.brave.com",
            parameters=(("safesearch", "strict"),),
            cookies=(("safesearch", "strict"),),
        ),
    ),
}
_NO_ADDRESS = frozenset({"music.youtube.com", "tv.youtube.com", *_DUCK_ALIASES})
_YOUTUBE_ADDRESSES = {YouTubeMode.MODERATE: "restrictmoderate.youtube.com", YouTubeMode.STRICT: "restrict.youtube.com"}


@dataclass(frozen=True, slots=True)
class HostRules:
    """What holds for requests to one host.

    Attributes:
        enforced: what is changed in them; `None` for nothing.
        searched: the site whose searches are read; `None` where none are.
    """

    enforced: Enforcement | None = None
    searched: SearchSite | None = field(default=None)


@cache
def host_rules(engines: frozenset[SearchEngine], youtube: YouTubeMode, *, searched: bool) -> dict[str, HostRules]:
    """Returns host → what holds for it; to be read only.

    Args:
        engines: whose SafeSearch is enforced.
        youtube: the Restricted Mode that is enforced.
        searched: whether searches are read.
    """
    found: dict[str, HostRules] = {}
    for engine in engines:
        site, enforced = _ENFORCED[engine]
        found |= dict(_enforced(site, enforced))
    if youtube is not YouTubeMode.OFF:
        header = ("youtube-restrict", youtube.value.capitalize())
        found |= dict(_enforced(_YOUTUBE, Enforcement("youtube", _YOUTUBE_ADDRESSES[youtube], headers=(header,))))
    if searched:
        for site in SITES:
            for host in site.hosts:
                found[host] = HostRules(found[host].enforced if host in found else None, site)
    return found


def _enforced(site: SearchSite, enforced: Enforcement) -> Iterator[tuple[str, HostRules]]:
    without_address = HostRules(replace(enforced, address=""))
    usual = HostRules(enforced)
    for host in site.hosts:
        yield host, without_address if host in _NO_ADDRESS else usual

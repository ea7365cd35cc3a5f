# ruff: noqa: RUF001  look-alikes are what some pages are written in
"""Synthetic pages: sites described in a few sentences, laid out, dressed up and lengthened in many ways.

A site of `samples/pages-*.txt` (harmful) or `samples/fine-*.txt` (harmless) is one line: title, then what it says. The order of
the MD5 of its title puts it into the tuning or the reporting half of its category, with all its pages: words may be chosen by the
former alone. The sites are made up, and were described before a word of the lexicon was chosen by them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import md5
from itertools import pairwise
from pathlib import Path

SAMPLES = Path(__file__).parent / "samples"
VARIANTS = 4
FULL_WIDTH = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}
_LEET = str.maketrans("aeio", "4310")
_ALIKE = str.maketrans("aceopxy", "асеорху")
_TRADITIONAL = str.maketrans(
    "赌场开户线网视频级片无码账贷卖枪杀药货发买体点对亲爱儿后会业现实时见马东车红转钱银领证号联系赢奖乐宝护样专区电脑图书办学员钻单龙门庄驾驶验资产团队陈杀灵动强报复击弹头处",
    "賭場開戶線網視頻級片無碼賬貸賣槍殺藥貨發買體點對親愛兒後會業現實時見馬東車紅轉錢銀領證號聯繫贏獎樂寶護樣專區電腦圖書辦學員鑽單龍門莊駕駛驗資產團隊陳殺靈動強報復擊彈頭處",
)
_FILLER = {
    "en": (
        "We use cookies to remember your settings and to count visitors. You can change your choice at any time in the footer.",
        "This site works best in a current browser. If a page does not load, wait a moment and try again.",
        "Our team is spread over several time zones and answers messages in the order in which they arrive.",
        "The terms of use were last changed in spring; by staying here you accept them in their newest form.",
        "Read more in the section of common questions, where we collect what visitors wanted to know this year.",
        "All texts and pictures on this page belong to their owners. Translations are made by volunteers.",
    ),
    "zh": (
        "本站使用缓存记住您的设置,您可以随时在页面底部更改。",
        "建议使用最新版本的浏览器访问,如页面加载缓慢请稍后再试。",
        "我们的团队分布在多个城市,会按照留言的先后顺序进行回复。",
        "使用条款于今年春天更新,继续浏览即表示您同意最新内容。",
        "更多内容请查看常见问题栏目,我们整理了访客今年关心的话题。",
        "本页文字与图片归原作者所有,翻译由志愿者完成。",
    ),
}
_MENU = {"en": ("Home", "About", "Contact", "Help"), "zh": ("首页", "关于", "联系", "帮助")}


@dataclass(frozen=True, slots=True)
class Site:
    """One described site; `category` is what its pages are to be found as, for a harmless one the topic that it touches."""

    category: str
    language: str
    title: str
    parts: tuple[str, ...]

    @property
    def digest(self) -> bytes:
        """MD5 of the title, which decides all that is left to chance."""
        return md5(self.title.encode(), usedforsecurity=False).digest()


def sites(name: str, half: str) -> Iterator[Site]:
    """Reads one half (`tune` or `report`) of `samples/<name>.txt`; the language is the last part of the name."""
    described: dict[str, list[Site]] = {}
    category = ""
    for line in (SAMPLES / f"{name}.txt").read_text("utf-8").splitlines():
        if not line:
            continue
        if line.startswith("# "):
            category = line[2:]
        else:
            title, body = line.split(" | ", 1)
            described.setdefault(category, []).append(Site(category, name.rpartition("-")[2], title, tuple(body.split(" / "))))
    for listed in described.values():
        yield from sorted(listed, key=lambda site: site.digest)[half == "report" :: 2]


def pages_of(site: Site) -> Iterator[tuple[str, str]]:
    """Yields (what was done, HTML) for each of the site's `VARIANTS` pages: whole, short, long and whole with a menu.

    Layout and evasion change from site to site; every second page evades.
    """
    seed = int.from_bytes(site.digest[1:5])
    for variant in range(VARIANTS):
        number = seed + variant * 7
        layout = _LAYOUTS[number % len(_LAYOUTS)]
        evasion = _EVASIONS[(seed // 16 + variant) % len(_EVASIONS)] if variant % 2 else _plain
        if evasion is _split_tags and layout is _gallery:
            evasion = _soft_hyphens  # an attribute holds no elements
        title = (_soft_hyphens if evasion is _split_tags else evasion)(site.title)
        parts = [evasion(part) for part in site.parts]
        length = ("whole", "short", "long", "menu")[variant]
        if length == "short":
            parts = parts[:3]
        elif length == "long":
            parts = _lengthened(parts, site.language)
        menu = _MENU[site.language] if length in {"long", "menu"} else ()
        yield f"{layout.__name__} {evasion.__name__} {length}".replace("_", ""), layout(title, parts, menu)


def _lengthened(parts: list[str], language: str) -> list[str]:
    filler = _FILLER[language]
    return [text for index, part in enumerate(parts) for text in (filler[index % len(filler)], part)] + [*filler, *filler]


def _links(menu: tuple[str, ...]) -> str:
    return "<nav>" + " ".join(f"<a href=/{index}>{text}</a>" for index, text in enumerate(menu)) + "</nav>" if menu else ""


def _article(title: str, parts: list[str], menu: tuple[str, ...]) -> str:
    paragraphs = "".join(f"<p>{part}</p>" for part in parts)
    return f"<!doctype html><title>{title}</title>{_links(menu)}<main><h1>{title}</h1>{paragraphs}</main>"


def _landing(title: str, parts: list[str], menu: tuple[str, ...]) -> str:
    cards = "".join(f"<div class=card><h3>{part}</h3><button>OK</button></div>" for part in parts)
    description = parts[0].replace("<span>", "").replace("</span>", "")
    head = f'<title>{title}</title><meta name="description" content="{description}">'
    return f"<html><head>{head}</head><body>{_links(menu)}{cards}</body>"


def _link_list(title: str, parts: list[str], menu: tuple[str, ...]) -> str:
    items = "".join(f"<li><a href=/{index}>{part}</a>" for index, part in enumerate(parts))
    return f"<title>{title}</title><h1>{title}</h1>{_links(menu)}<ul>{items}</ul>"


def _forum(title: str, parts: list[str], menu: tuple[str, ...]) -> str:
    posts = "".join(
        f"<tr><td class=u>user{index}<td><div>#{index + 1}</div><div>{part}</div>" for index, part in enumerate(parts)
    )
    return f"<html><head><title>Thread: {title}</title></head><body>{_links(menu)}<table>{posts}</table></body></html>"


def _shop(title: str, parts: list[str], menu: tuple[str, ...]) -> str:
    goods = "".join(f"<li class=p><img src={index}.jpg alt=p{index}><span>{part}</span></li>" for index, part in enumerate(parts))
    return (
        f"<head><meta name=keywords content='{title.replace(chr(39), '')}'></head>{_links(menu)}<h2>{title}</h2><ul>{goods}</ul>"
    )


def _captions(title: str, parts: list[str], menu: tuple[str, ...]) -> str:
    cells = "".join(f'<td><img src=x.jpg alt="{title}"><br>{part}' for part in parts)
    return f"<TITLE>{title}</TITLE><BODY>{_links(menu)}<TABLE><TR>{cells}</TABLE>"


def _gallery(title: str, parts: list[str], menu: tuple[str, ...]) -> str:
    """Nothing but pictures: what the page says stands in alternative texts and one description."""
    images = "".join(f'<a href=/{index}><img src={index}.jpg alt="{part}"></a>' for index, part in enumerate(parts))
    head = f'<title>{title}</title><meta property="og:description" content="{" ".join(parts)}">'
    return f"<html><head>{head}</head><body>{_links(menu)}{images}</body></html>"


def _single_block(title: str, parts: list[str], menu: tuple[str, ...]) -> str:
    return f"<title>{title}</title><body>{_links(menu)}<center><b>{title}</b><br><br>{'<br>'.join(parts)}</center>"


def _plain(text: str) -> str:
    return text


def _zero_width(text: str) -> str:
    return "\u200b".join(text)


def _full_width(text: str) -> str:
    return text.translate(FULL_WIDTH)


def _traditional(text: str) -> str:
    return text.translate(_TRADITIONAL)


def _alike(text: str) -> str:
    return text.translate(_ALIKE)


def _leet(text: str) -> str:
    return " ".join(word.translate(_LEET) if index % 2 else word for index, word in enumerate(text.split(" ")))


def _symbols(text: str) -> str:
    """A middle dot inside each run of four Chinese characters, a star inside each long word."""
    cut = [word if len(word) < 5 or not word.isascii() else f"{word[:2]}*{word[2:]}" for word in text.split(" ")]
    joined = " ".join(cut)
    marked = [
        f"{one}·" if index % 4 == 1 and one >= "一" and two >= "一" else one for index, (one, two) in enumerate(pairwise(joined))
    ]
    return "".join(marked) + joined[-1:]


def _split_tags(text: str) -> str:
    """Each third character stands in an element of its own, which a reader does not see."""
    return "".join(f"<span>{char}</span>" if index % 3 == 1 and char.isalpha() else char for index, char in enumerate(text))


def _soft_hyphens(text: str) -> str:
    return "".join(f"{char}&shy;" if index % 3 == 0 and char.isalpha() else char for index, char in enumerate(text))


_LAYOUTS: tuple[Callable[[str, list[str], tuple[str, ...]], str], ...] = (
    _article, _landing, _link_list, _forum, _shop, _captions, _gallery, _single_block,
)  # fmt: skip
_EVASIONS: tuple[Callable[[str], str], ...] = (
    _zero_width, _full_width, _traditional, _alike, _leet, _symbols, _split_tags, _soft_hyphens,
)  # fmt: skip

"""Short pages whose structure is involved: elements within each other that belong elsewhere, and such that hide or show again."""

import random
from collections.abc import Iterator

_FAMILIES = (
    "table table tr td th tbody thead caption colgroup p div template a b hr form input",
    "ul ol li dl dd dt p div a nobr button span h1 h2 form blockquote noscript",
    "svg svg math title desc foreignObject mi mtext g style script noembed textarea a p div br b font path iframe noscript",
    "select option optgroup datalist textarea input details summary dialog div p template a img",
    "div p span b i a img input meta video template textarea title noscript script style iframe object ruby rt rp body html",
)
"""Names of elements that have rules for each other."""
_ATTRIBUTES = (
    *[""] * 8, *[" hidden"] * 3, ' style="visibility:hidden"', ' style="visibility:visible"', ' style="display:none"',
    ' style="display:block"', ' style="font-size:0"', ' style="font-size:9px"', ' style="color:transparent"',
    ' style="color:red"',
    " popover", " open", " selected", " label=l", " size=3", " multiple", " value=v", " placeholder=h", " alt=t", " href=r",
    " color=x",
    ' src="data:image/svg+xml,<text>in"', ' srcdoc="&lt;p>in"', " shadowrootmode=open", " type=hidden",
    " name=keywords content=k",
    " name=description content=d", " property=og:title content=o", ' data="data:text/html,<p>in"',
    ' content="0;url=data:text/html,<i>" http-equiv=refresh', " href=r rel=No type=T", " src=s alt=' t '", " href=' '",
)  # fmt: skip


def structured_pages(seed: int, count: int) -> Iterator[str]:
    """Yields pages; the same ones for a seed."""
    chosen = random.Random(seed)
    families = [family.split() for family in _FAMILIES]
    for _ in range(count):
        names = chosen.choice(families)
        if chosen.random() < 0.15:
            names = names + chosen.choice(families)
        yield "".join(_parts(chosen, names))


def _parts(chosen: random.Random, names: list[str]) -> Iterator[str]:
    begun: list[str] = []
    yield chosen.choice(("", "t"))
    for number in range(chosen.randrange(4, 16)):
        if chosen.random() < 0.36:
            yield f"</{chosen.choice(begun if begun and chosen.random() < 0.7 else names)}>"
        else:
            begun.append(chosen.choice(names))
            written = begun[-1].upper() if chosen.random() < 0.1 else begun[-1]
            yield f"<{written}{chosen.choice(_ATTRIBUTES)}{'/' if chosen.random() < 0.08 else ''}>"
        yield chosen.choices(
            (chr(97 + number), f"{chr(97 + number)} ", " ", "<![CDATA[q]]>", "<!--x-->", "&amp;", ""), (40, 20, 5, 3, 2, 2, 28)
        )[0]

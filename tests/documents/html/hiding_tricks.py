"""Ways to write text that people read and a reader of markup may not, and ways to plant text that nobody sees.

Each is a page around `TEXT`, a mark that stands for a gambling page or for what is planted in a harmless one.
"""

import base64
import html
from collections.abc import Callable
from urllib.parse import quote

TEXT = "@@"

NEEDS_RENDERING = frozenset(["css-before", "css-after", "script", "display-by-sheet", "bidi", "inline-blocks", "long-comment"])
"""Tricks that the reader does not see through: style sheets, scripts, the order of letters, what stands behind 2 MB."""
STILL_PLANTED = frozenset(["class-sheet", "alt", "meta"])
"""Plants that count all the same."""

FURTHER_NEED_RENDERING = frozenset(
    "svg-use clip-escaped floats letter-cells list-marker srcset-svg background-svg attr-content class-important".split()  # noqa: SIM905
)
FURTHER_STILL_PLANTED = frozenset(["annotation", "reopened", "svg-attribute", "object-loaded"])
"""The same of `FURTHER_TRICKS` and `FURTHER_PLANTS`."""

TRICKS: dict[str, str] = {
    "plain": "<p>@@</p>",
    "xmp": "<xmp>@@</xmp>",
    "plaintext": "<plaintext>@@",
    "plaintext-comment": "<plaintext><!-- @@ -->",
    "svg-style-closed": "<svg><style/><text y=20>@@</text></svg>",
    "svg-script-closed": "<svg><script/><text y=20>@@</text></svg>",
    "svg-style-breakout": "<svg><style><p>@@</p></svg>",
    "svg-noembed": "<svg><noembed><p>@@</p></noembed></svg>",
    "math-iframe": "<math><iframe><p>@@</p></iframe></math>",
    "svg-template": "<svg><template/><text y=20>@@</text></svg>",
    "svg-cdata": "<svg width=900 height=300><foreignObject width=900 height=300><![CDATA[@@]]></foreignObject></svg>",
    "math-cdata": "<math><mtext><![CDATA[@@]]></mtext></math>",
    "li-hidden": "<ul><li hidden>x</ul><p>@@</p>",
    "p-hidden": "<p hidden>x<blockquote>@@</blockquote>",
    "span-hidden": "<div><span hidden></div><p>@@</p>",
    "svg-g-none": "<svg><g style='display:none'/></svg><p>@@</p>",
    "svg-g-inside": "<svg width=900 height=300><g style='display:none'/><text y=20>@@</text></svg>",
    "td-hidden": "<table><tr><td hidden>x<tr><td>@@</table>",
    "dd-hidden": "<dl><dd hidden>x<dt>@@</dl>",
    "button-hidden": "<button hidden>x<button>@@</button>",
    "a-hidden": "<a hidden href=x>x<a href=y>@@</a>",
    "option-hidden": "<select size=9><option hidden>x<option>@@</select>",
    "tr-hidden": "<table><tr hidden><td>x<tr><td>@@</table>",
    "unknown-parts": "<p>@unknown@</p>",
    "hidden-parts": "<p>@hidden@</p>",
    "script-parts": "<p>@script@</p>",
    "comment-parts": "<p>@comment@</p>",
    "class-hidden": "<div class=hidden>@@</div>",
    "title-hidden": "<div title='hidden gems'>@@</div>",
    "until-found": "<div hidden=until-found style='content-visibility:visible'>@@</div>",
    "hidden-displayed": "<div hidden style='display:block'>@@</div>",
    "none-undone": "<div style='display:none;display:block'>@@</div>",
    "none-invalid": "<div style='display:none/'>@@</div>",
    "shadow-open": "<div><template shadowrootmode=open>@@</template></div>",
    "shadow-closed": "<div><template shadowrootmode=closed>@@</template></div>",
    "input-value": "<input size=200 value='@@'>",
    "placeholder": "<input size=200 placeholder='@@'>",
    "textarea-placeholder": "<textarea rows=20 cols=90 placeholder='@@'></textarea>",
    "option-label": "<select size=9><option label='@@'></select>",
    "srcdoc": "<iframe width=900 height=400 srcdoc='@escaped@'></iframe>",
    "iframe-data": "<iframe width=900 height=400 src='@data@'></iframe>",
    "iframe-base64": "<iframe width=900 height=400 src='@base64@'></iframe>",
    "object-data": "<object width=900 height=400 data='@data@'></object>",
    "embed-data": "<embed width=900 height=400 src='@data@'>",
    "frameset": "<frameset><frame src='@data@'></frameset>",
    "many-tags": "<i></i>" * 50_100 + "<p>@@</p>",
    "long-comment": f"<!--{'x' * 2_000_000}--><p>@@</p>",
    "style-displayed": "<style style='display:block;white-space:pre-wrap'>@@</style>",
    "script-displayed": "<script type=text/plain style='display:block;white-space:pre-wrap'>@@</script>",
    "visible-child": "<div style='visibility:hidden'><p style='visibility:visible'>@@</p></div>",
    "picture-svg": "<img width=900 height=400 src='@svg@'>",
    "css-before": "<style>p::before{content:'@@'}</style><p></p>",
    "css-after": "<style>p::after{content:'@@'}</style><p></p>",
    "script": "<script>document.write('@@')</script>",
    "display-by-sheet": "<style>[hidden]{display:block}</style><div hidden>@@</div>",
    "bidi": "<bdo dir=rtl>@reversed@</bdo>",
    "inline-blocks": "<p>@inline@</p>",
    "references": "<p>@references@</p>",
    "foster": "<table>@@<tr><td>x</table>",
    "double-escaped": "<script><!--<script></script>--></script><p>@@</p>",
    "comment-end": "<!--> @@ <!-- -->",
}
"""60 ways to show text, and the plain one."""

PLANTS: dict[str, str] = {
    "noscript": "<noscript>@@</noscript>",
    "off-screen": "<div style='position:absolute;left:-9999px'>@@</div>",
    "class-sheet": "<style>.q{display:none}</style><div class=q>@@</div>",
    "opacity": "<div style='opacity:0'>@@</div>",
    "white-1px": "<div style='color:#fff;font-size:1px'>@@</div>",
    "dialog": "<dialog>@@</dialog>",
    "datalist": "<datalist><option>@@</datalist>",
    "canvas": "<canvas>@@</canvas>",
    "video": "<video>@@</video>",
    "audio": "<audio>@@</audio>",
    "svg-metadata": "<svg><metadata>@@</metadata></svg>",
    "svg-defs": "<svg><defs><text>@@</text></defs></svg>",
    "svg-desc": "<svg><desc>@@</desc></svg>",
    "area": "<map><area alt='@@'></map>",
    "details": "<details><summary>more</summary><p>@@</p></details>",
    "rp": "<ruby>a<rp>@@</rp></ruby>",
    "select": "<select style='width:9em'><option>one<option>@@</select>",
    "height": "<div style='height:0;overflow:hidden'>@@</div>",
    "after-body": "<div hidden></body>@@</div>",
    "template": "<div hidden><template></div>@@</template></div>",
    "hidden": "<div hidden>@@</div>",
    "comment": "<!-- @@ -->",
    "alt": "<img src=x.png alt='@@'>",
    "meta": "<meta name=description content='@@'>",
}
"""24 ways to have text on a page that nobody sees."""


FURTHER_TRICKS: dict[str, str] = {
    "svg-use": "<svg width=900 height=300><defs><text id=t y=20>@@</text></defs><use href='#t'/></svg>",
    "nested-form": "<form><form hidden>@@</form></form>",
    "foster-hidden": "<table hidden>@@<tr><td>x</table>",
    "p-table": "<p hidden>x<table><tr><td>@@</table>",
    "nobr-hidden": "<nobr hidden>x<nobr>@@</nobr>",
    "data-plain": "<iframe width=900 height=400 src='data:text/plain,@quoted@'></iframe>",
    "object-fallback": "<object data=missing.bin type=application/x-none>@@</object>",
    "sandbox-noscript": "<iframe width=900 height=400 sandbox srcdoc='&lt;noscript>@@&lt;/noscript>'></iframe>",
    "important-block": "<div style='display:block!important;display:none'>@@</div>",
    "font-size-child": "<div style='font-size:0'><p style='font-size:16px'>@@</p></div>",
    "min-height": "<div style='height:0;min-height:20em;overflow:hidden'>@@</div>",
    "clip-escaped": "<div style='height:0;overflow:hidden'><p style='position:absolute'>@@</p></div>",
    "brought-back": "<div style='position:absolute;left:-9999px;transform:translateX(9999px)'>@@</div>",
    "floats": "<div>@floats@</div>",
    "letter-cells": "<table>@cells@</table>",
    "list-marker": "<ul><li style=\"list-style:'@@' inside\">x</ul>",
    "srcset-svg": "<img width=900 height=400 srcset='@svg64@'>",
    "background-svg": "<div style='height:400px;background:url(@svg64@)'></div>",
    "attr-content": "<style>p::before{content:attr(title)}</style><p title='@@'></p>",
    "class-important": "<style>.x{display:block!important}</style><div class=x style='display:none'>@@</div>",
}
"""20 more, written down before the reader had been tried on any: it missed 18."""

FURTHER_PLANTS: dict[str, str] = {
    "popover": "<div popover>@@</div>",
    "form-pointer": "<form><div hidden></form>@@</div>",
    "reopened": "<p><b hidden>x</p><p>@@</p>",
    "annotation": "<math><semantics><mi>x</mi><annotation>@@</annotation></semantics></math>",
    "mphantom": "<math><mphantom><mtext>@@</mtext></mphantom></math>",
    "svg-symbol": "<svg><symbol><text y=20>@@</text></symbol></svg>",
    "svg-clip": "<svg><clipPath><text y=20>@@</text></clipPath></svg>",
    "svg-attribute": "<svg><g display=none><text y=20>@@</text></g></svg>",
    "meter": "<meter>@@</meter><progress value=0>@@</progress>",
    "object-loaded": "<object data='data:text/html,x'>@@</object>",
    "clip-path": "<div style='position:absolute;clip-path:inset(100%)'>@@</div>",
    "clip": "<div style='position:absolute;clip:rect(0,0,0,0)'>@@</div>",
    "scale": "<div style='transform:scale(0)'>@@</div>",
    "text-indent": "<div style='text-indent:-9999px;white-space:nowrap;overflow:hidden'>@@</div>",
    "transparent": "<div style='color:transparent'>@@</div>",
}
"""15 more of these: it read all of them."""


def page_of(trick: str, text: str) -> str:
    """Returns the page of a trick around a text."""
    words = text.split(" ")
    forms: dict[str, Callable[[], str]] = {
        "@unknown@": lambda: " ".join(f"<x-a>{word[:2]}</x-a>{word[2:]}" for word in words),
        "@hidden@": lambda: " ".join(f"{word[:2]}<i hidden></i>{word[2:]}" for word in words),
        "@script@": lambda: " ".join(f"{word[:2]}<script></script>{word[2:]}" for word in words),
        "@comment@": lambda: " ".join(f"{word[:2]}<!-- -->{word[2:]}" for word in words),
        "@inline@": lambda: " ".join(f"{word[:2]}<div style='display:inline'>{word[2:]}</div>" for word in words),
        "@escaped@": lambda: html.escape(f"<p>{text}"),
        "@data@": lambda: "data:text/html," + quote(f"<p>{text}"),
        "@base64@": lambda: "data:text/html;base64," + base64.b64encode(f"<p>{text}".encode()).decode(),
        "@svg@": lambda: "data:image/svg+xml," + quote(_picture(words)),
        "@reversed@": lambda: text[::-1],
        "@quoted@": lambda: quote(text),
        "@floats@": lambda: "<br clear=all>".join(
            f"<div style='float:left'>{word[:2]}</div><div style='float:left'>{word[2:]}</div>" for word in words
        ),
        "@cells@": lambda: "".join("<tr>" + "".join(f"<td>{letter}" for letter in word) for word in words),
        "@svg64@": lambda: "data:image/svg+xml;base64," + base64.b64encode(_picture(words).encode()).decode(),
        "@references@": lambda: "".join(f"&#{ord(letter)};" for letter in text),
    }
    for mark, form in forms.items():
        if mark in trick:
            trick = trick.replace(mark, form())
    return trick.replace(TEXT, text)


def _picture(words: list[str]) -> str:
    lines = [" ".join(words[place : place + 12]) for place in range(0, len(words), 12)]
    rows = "".join(f"<text y='{20 * number + 20}'>{line}</text>" for number, line in enumerate(lines))
    return f"<svg xmlns='http://www.w3.org/2000/svg' width='900' height='400'>{rows}</svg>"

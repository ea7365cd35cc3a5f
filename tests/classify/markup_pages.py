# ruff: noqa: E501, ISC004, SIM905  pages and their parts read best as they are
"""Pages for the tests of the two readings of markup: ordinary ones, hostile ones, and made-up ones out of the grammar of HTML."""

from collections.abc import Callable

from hypothesis import strategies as st

ORDINARY = (
    """<!DOCTYPE html><html lang=en><head><title>A &amp; B</title><base href="/b/"><meta charset=utf-8>
<META NAME="Description" content='"About" &lt;us&gt;'><meta property="og:title" content="Other"><meta name=keywords content="one, two">
<link rel="Alternate" type="application/RSS+xml" href="/feed?a=1&amp;b=2"><style>p{display:none}</style>
<script>if (a < b) document.write("</p><p>no</p>");</script></head><body class="page hidden-xs"><!-- a <p> in a comment -->
<nav><ul><li><a href="/1" rel="NoFollow">first <b>link</b></a><li><a href='2'><img src="i.png" alt="a &quot;picture&quot;"></a>
<li><A HREF=3>third</A></ul></nav><p>Some text, 1 < 2 &nbsp; and &#39;more&#39; &copy; 2020.<br>A line</p><div hidden>away<div>x</div>y</div>
<div aria-hidden="true" class="x">shown</div><div style="display : none">away</div><p style="visibility:hidden">away<div>shown</div>
<template><p>away</p></template><input type=submit value="Send"><input type=hidden value=no><img src=j.png><map><area href=3 alt=corner>
</map><a name=x>none</a><svg viewBox="0 0 1 1"><path d="M0 0"/></svg><my-card hidden><my-card>x</my-card>y</my-card>shown</body></html>""",
    """<table border=0 cellpadding='1'><tr><td>\u4e2d\u6587 <a href='?q=\u8d4c&amp;x'>\u8d4c\u573a</a><td style='font-size:0'>no<td style=font-size:0.9em>yes
</table><textarea>&lt;b&gt;</textarea><p title="a > b">quotes</p><p title='a " b'>more</p><a/href=4/>slashes</a><a href = "5" href=6>twice</a>
<![CDATA[ x ]]><?php echo 1 ?></ p></><p a=b"c d>odd</p><x:y z>colon</x:y><a href="7\"">seven<a href=" 8 ">eight <img alt=in>""",
    "<p>\U0001f600 caf\u00e9 <lin\u212a hidden>x<mar\u212a>y</mar\u212a><noframe\u017f>z</noframe\u017f><scr\u0130pt>w</scr\u0130pt>",
    "<p>a</p><div hidden>b</body>c<div hidden>d</html>e<div hidden>f<body style=display:none>g</i>h<html hidden>i",
    "<html hidden>a<body style=display:none>b<p>c</p>",
    "<link href=a><lin\u212a href=b><p>&Quot;&NBSP;&Amp;&AMP;&QUOT; &#039;&#39;&#39",
    "<base href=1><base href=2><base><BASE HREF=3>",
    "<title>a</title><title>b</title><meta property=og:title content=c><meta property=twitter:title name='' content=d>",
    "<meta property=og:title content=c><title>a</title><meta name=og:title property=description content=d>",
    "<title>a<b>b</title><p>c<title>d</p>e</title>",
    "<x-a hidden>a<x-b>b</x-b>c<x-a>d</x-a>e</x-a>f",
    "<p>a<!-->b<!--->c<!--!>d--!>e<!---!>f-->g<!----!>h<!-- --!-->i<!--",
    "<title>a<!--</title>b<TEXTAREA x=1><script></title></textarea >c<a href=1><title></titles><a href=2></title\n>d</a><textarea/><p>",
    "<noscript>1 < 2<!--</noscript>a<NoScript x><p title='</noscript>b<a href=1><noscript><noscript><style></noscript/>c<noscript>d<noscript>e",
    "no tag at all",
    "",
    "before <b>after",
    "<svg><style/>a<style><p>b</svg><svg><noembed><g/>c</svg><svg><title>d</title><desc>e<p>f</desc><metadata>g</metadata>h</svg>",
    "<math><mi>a<style>b</style></mi><iframe><p>c</math><svg><foreignObject><![CDATA[d]]><xmp><p>e</xmp><svg/><svg>f</svg></foreignObject></svg>",
    "<ul><li hidden>a</ul>b<p hidden>c<blockquote>d</blockquote><div><span hidden></div>e<table><tr><td hidden>f<tr><td>g</table>"
    "<dl><dd hidden>h<dt>i</dl><a hidden>j<a>k</a><button hidden>l<button>m</button><b hidden><p>n</b>o",
    "<details>a<summary>b</summary>c<p>d</details><div style=visibility:hidden>e<p style=visibility:visible>f</p>g</div><select><option>h"
    "<option label=i>j<option selected>k</select><dialog>l</dialog><dialog open>m</dialog><datalist><option>n</datalist><ruby>o<rp>p</ruby>",
    "<template>a<template>b</template>c</template>d<div><template shadowrootmode=open>e</template></div><input value=f placeholder=g>"
    "<input type=password value=h><textarea placeholder=i>j</textarea><iframe srcdoc='&lt;p>k'></iframe><object data='data:text/html,l'></object>",
    "<script><!-- <script>a</script>b--></script>c<script style='display:block'>d</script><x-a>e</x-a>f<i hidden></i>g<plaintext></plaintext><p>h",
)

LONG = (
    f"<a href=x>{'<b>' * 498}in<b>last<b>out</a>",
    f"<a href=x>{'<img alt=y>' * 260}z<a href=y>{'<img alt=y>' * 240}z",
)
"""Of as many pieces as the text of a link may have, and more."""

HOSTILE: tuple[Callable[[int], str], ...] = (
    lambda n: "<p>&amp" * (n // 7),
    lambda n: "".join(f"&#{number};" for number in range(20_000, 20_000 + n // 8)),
    lambda n: "".join(f"&#x{number:x}" for number in range(n // 8)),
    lambda n: "".join(f"&no{number:x};" for number in range(n // 8)),
    lambda n: "<p>\u4e2d&copy" * (n // 9),
    lambda n: "<base href=&copy>" * (n // 17),
    lambda n: "".join(f"<i style='opacity:{number}'>" for number in range(n // 25)),
    lambda n: "".join(f"<i style='opacity:0{';' * 390}{number}'>" for number in range(n // 415)),
    lambda n: "".join(f"<i style='height:0;{'a:b;' * 40}{number}'>" for number in range(n // 190)),
    lambda n: "<iframe src='data:text/html,x'></iframe>" * (n // 40),
    lambda n: "<textarea placeholder=x></textarea>" * (n // 36),
    lambda n: "<p>x" * (n // 4),
    lambda n: "<svg>" * (n // 5),
    lambda n: "<svg></svg>" * (n // 11),
    lambda n: "<math><mi>" * (n // 10),
    lambda n: "<svg>" + "<x>" * (n // 8) + "</y>" * (n // 8),
    lambda n: "<svg>" + "<![CDATA[" * (n // 9),
    lambda n: "<svg><title>" + "<svg><p>" * (n // 8),
    lambda n: "<button>" + "<i>" * (n // 8) + "</b>" * (n // 8),
    lambda n: "<p hidden>" + "<i>" * (n // 8) + "</p><div>" * (n // 18),
    lambda n: "<a hidden><div>" * (n // 15),
    lambda n: "<script><!--<script>" + "</script" * (n // 8),
    lambda n: "<script>" + "<!--" * (n // 4),
    lambda n: "<p style='" + "none" * (n // 4) + "'>",
    lambda n: "<p style='" + "height  " * (n // 8) + "'>",
    lambda n: "<i style='opacity:0'>" * (n // 21),
    lambda n: "<select>" + "<option>" * (n // 8),
    lambda n: "<select>" + "<option label=x>" * (n // 16),
    lambda n: "<div><template>" * (n // 15),
    lambda n: "<plaintext>" + "<p>" * (n // 3),
    lambda n: "<div>" * (n // 5),
    lambda n: "<div>" * (n // 11) + "</div>" * (n // 11),
    lambda n: "a" * n,
    lambda n: " " * n,
    lambda n: "\u00a0 " * (n // 2),
    lambda n: '<p title="' + "x" * n,
    lambda n: "<p " + " ".join(f"a{i}=1" for i in range(n // 8)) + ">",
    lambda n: "<p " + " " * n + "=" + " " * n,
    lambda n: "<p" + " a =" * (n // 4),
    lambda n: "<a " + "href" * (n // 4) + "=x>y",
    lambda n: ("<img alt " + "x" * 1000 + ">") * (n // 1010),
    lambda n: '<img alt="' + '"' * n,
    lambda n: "<" * n,
    lambda n: "&" * n,
    lambda n: "&amp;" * (n // 5),
    lambda n: "<p>&copy" * (n // 8),
    lambda n: "&#" + "9" * n,
    lambda n: "<!--" * (n // 4),
    lambda n: "<!-" * (n // 3),
    lambda n: "<!--" + "-" * n,
    lambda n: "<!--" + "-> " * (n // 3),
    lambda n: "<!--" + "--!" * (n // 3),
    lambda n: "<!-->" * (n // 5),
    lambda n: "<!" * (n // 2),
    lambda n: "</" * (n // 2),
    lambda n: '<a "' * (n // 4),
    lambda n: "<p><b><i><a>" * (n // 12),
    lambda n: "<script>" * (n // 8),
    lambda n: "<script></scrip" * (n // 15),
    lambda n: "<script>" + "</scrip " * (n // 8),
    lambda n: "<p a=" * (n // 5),
    lambda n: "<title>x" * (n // 8),
    lambda n: "<title></title>" * (n // 15),
    lambda n: "<title>" + "</titl " * (n // 7),
    lambda n: "<textarea>" + "</textareas " * (n // 12),
    lambda n: "<textarea></titl" * (n // 16),
    lambda n: "<noscript>" * (n // 10),
    lambda n: "<noscript></noscript>" * (n // 21),
    lambda n: "<noscript><noscript>" + "<title></noscripts>" * (n // 19),
    lambda n: '<p style="display:none">x' * (n // 24),
    lambda n: "<p hidden>" + "<" + "y" * (n // 100) + ">" + f"</{'z' * 50}>" * (n // 53),
    lambda n: f"<{'q' * (n // 4)} hidden>" + f"<{'q' * 9}>" * (n // 11),
    lambda n: "<p style='" + "display" + " " * n + ":none'>",
    lambda n: "<p style='" + "none " * (n // 5) + "'>x",
    lambda n: "<p style='" + ":         none" * (n // 14) + "'>x",
    lambda n: "<p " + "hidden" * (n // 6) + ">x",
    lambda n: "<p " + "aria-hidden " * (n // 12) + ">x",
    lambda n: "<p class='a-hidden'>x" * (n // 20),
    lambda n: "<p style='" + "font-size: " * (n // 11) + "'>x",
    lambda n: "<meta name=description content=x>" * (n // 32),
    lambda n: "<meta content='" + "x " * (n // 2),
    lambda n: "<a href=x>" + "y<b>" * (n // 4),
    lambda n: "<a href=x>" + "<img alt=' & '>" * (n // 15),
    lambda n: "<a href=x>y</a><img src=z>" * (n // 26),
    lambda n: "<a href='" + "&amp;" * (n // 5) + "&copy'>",
    lambda n: "<input value=" + "v" * n,
    lambda n: "\u4e2d" * n,
    lambda n: "<p>\U0001f600 " * (n // 5),
    lambda n: "<lin\u212a " * (n // 6),
    lambda n: "<" + "\u212a" * n,
    lambda n: "<a" + "\u212a" * n,
)
"""Each gives a page of about so many characters."""

_NAMES = (
    "a A p div DIV span b title template meta img IMG area input link base html body script STYLE iframe noembed noframes xmp textarea noscript NOSCRIPT svg li br "
    "svg SVG math foreignObject desc mi g path defs plaintext dialog details summary select option table tr td video rp rt font button ul dd "
    "my-widget lin\u212a mar\u212a noframe\u017f scr\u0130pt blockquote a\0"
).split(" ")
_ATTRIBUTES = "href HREF src alt ALT value type rel name property content hidden aria-hidden style STYLE class data-x \u212a typ open label size shadowrootmode srcdoc placeholder data selected color".split(
    " "
)
_VALUES = (
    "x", "", "a b", "  a\n b ", "/p?a=1&amp;b=2", "&nbsp;x&#39;", "&copy", "&AMP;&Amp;", "display:none", "display:block", "opacity:0", "visibility:visible", "position:absolute;left:-9999px", "height : 0;overflow:hidden", "until-found",
    "open", "&lt;p>in&lt;/p>", "data:text/html,<p>in", "data:image/svg+xml;base64,PHN2Zz48dGV4dD5pbjwvdGV4dD4=", "display:no&#110;e", "displ/**/ay:none", "DISPLAY : NONE", "display:\u00a0none",
    "block;none", "visibility: hidden", "overflow:hidden", "position : hidden", "font-size:0", "font-size: 0.5em", "hidden", "x hidden", "hidden-x",
    "hidaria-hiddenden", "display aria-hidden:none", "type=hidden", "hid type=hiddenden", ":aria-hidden hidden", "button", "Submit", "text",
    "keywords", "Description", "og:title", "twitter:description", "news_\u212aeywords", "\u4e2d\u6587", "\U0001f600", "nofollow NoOpener", "a'b", 'a"b',
    "a>b", "a/b", "x" * 600,
)  # fmt: skip
_TEXTS = (
    "text ", " ", "\n", "&amp;", "a & b", "&am", "p;", "1 < 2", "<", "</", "<!", "<?", "-->", "\u4e2d\u6587", "caf\u00e9", "\U0001f600", "\u3000",
    "word " * 30, "x" * 501, "\x1c\x85", "<!-- c -->", "<!-->", "<!---", "<!--", "--!>", "<!--!>", "<!--->", "</title>", "</textarea ", "<![CDATA[", "]]>", "</svg>", "</p>", "</div>", "</xmp>", "<svg><title>t</title><path/></svg>", "<script><!--<script></script>", "</noscript>", "</script>", "<!doctype x>", "</ x>", "\0",
)  # fmt: skip

_attribute = st.builds(
    lambda gap, name, sign, value, quote, end: gap + name + (sign + quote + value + (quote if end else "") if sign else ""),
    st.sampled_from((" ", "\n", "/", "", "\f ")),
    st.sampled_from(_ATTRIBUTES),
    st.sampled_from(("=", "=", " = ", "==", "")),
    st.sampled_from(_VALUES),
    st.sampled_from(('"', '"', "'", "")),
    st.integers(0, 12),
)
_tag = st.builds(
    lambda slash, name, attributes, end: f"<{slash}{name}{''.join(attributes)}{end}",
    st.sampled_from(("", "", "/")),
    st.sampled_from(_NAMES),
    st.lists(_attribute, max_size=4),
    st.sampled_from((">", ">", ">", "/>", " >", "")),
)
grammar = st.lists(st.one_of(_tag, _tag, st.sampled_from(_TEXTS)), max_size=25).map("".join)
"""Pages of tags, attributes and texts that mean something, and of such as look like them."""

HIDING = (
    "hidden", "HIDDEN", "aria-hidden", "type", "class", "=", '"', "'", " ", "\n", ":", ": ", "display", "visibility", "none", "font-size", "0", ".", "-",
    "x", "n", "y", "hid", "den", "\u00a0", "\x1c", "\u0130", "          ",
)  # fmt: skip
"""What attributes that hide are made of, and what keeps them from it."""
hiding = st.lists(st.sampled_from(HIDING), max_size=9).map("".join)

characters = st.one_of(
    st.text(alphabet="<>/!-= \"'&;#abpdivscriptmetahidden\n\0", max_size=200),
    st.text(alphabet=st.characters(max_codepoint=0xFF), max_size=80),
    st.text(alphabet=st.one_of(st.sampled_from("<>/a =\"'&"), st.characters(codec=None)), max_size=80),
    st.binary(max_size=120).map(lambda data: data.decode("utf-8", "surrogateescape")),
)
"""Any characters in each of the three widths in which a string is kept, lone surrogates with them."""

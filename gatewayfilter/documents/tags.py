"""The tags of a page, in one linear pass over the markup: no tree is built, nothing can backtrack.

Deviation: markup is cut by one possessive regular expression that follows the WHATWG tokenizer's attribute states,
not by a DOM. lexbor is quadratic in the attributes of a tag and its main-text heuristics in the depth of nesting: a
page of 2 MB held the process for minutes (docs/classification.md). `_markup.pyx` reads the same without expressions.
"""

import re
from collections.abc import Iterable, Iterator
from html import unescape

MAX_HTML = 2_000_000
"""Characters of a page that are read."""
MAX_TAGS = 100_000
"""Tags that are read; a large real page has 10,000."""
MAX_ATTRIBUTES = 20_000
"""Characters of a tag's attributes in which values are looked for."""

RAW_TAGS = ("script", "style", "iframe", "noembed", "noframes", "xmp")
"""Elements whose content is no markup, up to their end tag; `_expression` looks for their first letters."""
TEXT_TAGS = ("title", "textarea")
"""Elements whose content is text up to their end tag: no tag, no comment begins there. Not after `/>`: `svg` has empty ones."""
NO_SCRIPT = "noscript"
"""The element that browsers skip to its end tag, whatever begins within; its text for other readers is read up to there."""

_WS = r"\t\n\f\r "
_ATTRIBUTES = (
    rf"(?:[{_WS}]++[^{_WS}/>=\"']++=\"[^\"]*+\")*+"  # the usual form first; what follows reads any, this one too
    rf"(?:[{_WS}/]++|[^{_WS}/>][^{_WS}/>=]*+"
    rf"(?:[{_WS}]*+=[{_WS}]*+(?:\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z)|[^{_WS}>\"'][^{_WS}>]*+)?+)?+)*+"
)
_TEXT = r"(?:[^<]++|<(?![a-zA-Z/!?]))*+"


def _expression(*text_tags: str) -> re.Pattern[str]:
    """Returns what cuts markup into tokens, where some elements are of text alone; one of raw text is a token without name."""
    raw = "|".join(RAW_TAGS)
    return re.compile(
        rf"<(?=(?=[sSiInNxXtT])(?ai:({'|'.join((*RAW_TAGS, *text_tags))}))[{_WS}/>]|)"
        rf"(?:(?=[!sSiInNxX])(?:!--(?:-?>|(?:[^-]++|-(?!-!?>))*+(?:--!?>|\Z))"
        rf"|(?ai:{raw})(?=[{_WS}/>]){_ATTRIBUTES}(?:>|\Z)(?:[^<]++|<(?!/(?ai:\1)[{_WS}/>]))*+)"
        rf"|(/?[a-zA-Z][^{_WS}/>]*+)({_ATTRIBUTES})(?:>|\Z)"
        rf"|[!?/][^>]*+(?:>|\Z)|)((?(1)(?:(?<!/>)(?:[^<]++|<(?!/(?ai:\1)[{_WS}/>]))*+|(?<=/>){_TEXT})|{_TEXT}))"
    )


_TOKEN = _expression(*TEXT_TAGS, NO_SCRIPT)
_TOKEN_WITHIN = _expression(*TEXT_TAGS)  # within "noscript", which is cut into tokens by itself
_TOKEN_OF_ANY = _expression()
_FIRST_TEXT = re.compile(_TEXT)
# Every run of characters is consumed, whether it has a value or not: a name that is tried from each of its letters is quadratic.
_ATTRIBUTE = re.compile(
    rf"([^{_WS}/>][^{_WS}/>=]*+)"
    rf"(?:[{_WS}]*+=[{_WS}]*+(?:\"([^\"]*+)\"?+|'([^']*+)'?+|([^{_WS}>\"'][^{_WS}>]*+))?+)?+"
)
_ZEROS_BEHIND = re.compile("<\0++")
_END_TAG = re.compile("</[a-zA-Z\0]*+")
_LONG_NUMBER = re.compile(r"&#[xX]?[0-9a-fA-F]{9,}+;?")
_VOID = "area base br col embed hr img input link meta param source track wbr"
VOID_TAGS = frozenset(_VOID.split())

type Token = tuple[str, str, str, str]
"""Name of an element without markup or `""`, name of a tag as written (`div`, `/div`) or `""`, its attributes, text after it."""


def tokens_of(html: str) -> list[Token]:
    """Returns the markup from its first `<` on, token by token, bounded by `MAX_HTML` and `MAX_TAGS`."""
    found: list[Token] = []
    for token in _TOKEN.findall(bounded(html)):
        kind, name, attributes, text = token
        if name and kind and kind.lower() == NO_SCRIPT:
            first = _FIRST_TEXT.match(text)
            stop = first.end() if first else 0
            found.append(("", name, attributes, text[:stop]))
            found += _TOKEN_WITHIN.findall(text, stop)
        else:
            found.append(token)
    return found


def text_before(html: str) -> str:
    """Returns what stands before the first token."""
    first = html.find("<", 0, MAX_HTML)
    return html[:MAX_HTML] if first < 0 else html[:first]


def iter_tags(html: str) -> Iterator[tuple[str, str]]:
    """Yields name (`div`, `/div`) and attributes as written of each tag but void and raw-text ones, bounded as `tokens_of`.

    What looks like tags in elements of text is among them: within `svg`, they are.
    """
    for kind, name, attributes, text in tokens_of(html):
        if name and name.lower() not in VOID_TAGS:
            yield name.lower(), attributes
        for _, inner, values, _ in _TOKEN_OF_ANY.findall(text) if kind and "<" in text else ():
            if inner and inner.lower() not in VOID_TAGS:
                yield inner.lower(), values


def attribute_values(attributes: str, names: Iterable[str]) -> list[str]:
    """Returns some attributes (lower-case names) of a tag as it was written, values not unescaped, `""` for what is not there.

    The first of repeated ones counts. Of longer attributes `MAX_ATTRIBUTES` characters are read.
    """
    found = reversed(_ATTRIBUTE.findall(attributes[:MAX_ATTRIBUTES]))
    values = {name.lower(): double or single or bare for name, double, single, bare in found}
    return [values.get(name, "") for name in names]


def text_of(text: str) -> str:
    """Returns text of the markup as a reader sees it: unescaped, white space folded."""
    return " ".join(unescaped(text).split())


def unescaped(text: str) -> str:
    """Returns text of the markup with the characters that its references name."""
    return unescape(_LONG_NUMBER.sub(" ", text)) if "&" in text else text  # it raises for numbers of thousands of digits


def without_zeros(html: str) -> str:
    r"""Returns a page as browsers read it where zero characters stand in it: they see none in texts, in markup a strange one.

    Were they taken out of markup too, `<scr\0ipt>`, which browsers show the content of, would hide it.
    Source: HTML, 13.2.5, 13.2.6.4.7.
    """
    if "\0" not in html:
        return html
    return _TOKEN.sub(_marked, _ZEROS_BEHIND.sub("<\ufffd", html)).replace("\0", "")


def _marked(token: re.Match[str]) -> str:
    markup, text = token[0][: token.start(4) - token.start()], token[4]
    if token[1]:  # no end tag may come about where browsers see none
        text = _END_TAG.sub(lambda found: found[0].replace("\0", "\ufffd"), text)
        if token[1].lower() == NO_SCRIPT:
            text = _TOKEN_WITHIN.sub(_marked, text)
    return markup.replace("\0", "\ufffd") + text


def bounded(html: str) -> str:
    """Returns as much of a page as is read: `MAX_HTML` characters and `MAX_TAGS` tags."""
    html = html[:MAX_HTML]
    return html if html.count("<") <= MAX_TAGS else "<".join(html.split("<", MAX_TAGS)[:MAX_TAGS])

"""The tags of a page, in one linear pass over the markup: no tree is built, nothing can backtrack.

Deviation: markup is cut by one possessive regular expression that follows the WHATWG tokenizer's attribute states,
not by a DOM. lexbor is quadratic in the attributes of a tag and its main-text heuristics in the depth of nesting: a
page of 2 MB held the process for minutes (docs/classification.md). `_markup.pyx` reads the same without expressions.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from gatewayfilter.documents.html.character_references import unescape
from gatewayfilter.documents.html.open_elements import BREAKOUT, FOREIGN_ROOT, RULES, OpenElements, breaks_out

MAX_HTML = 2_000_000
"""Characters of a page that are read."""
MAX_TAGS = 100_000
"""Tags that are read; a large real page has 10,000."""
MAX_ATTRIBUTES = 20_000
"""Characters of a tag's attributes in which values are looked for."""
MOST_ATTRIBUTES = 1_000
"""Attributes of a tag that a tree is made with: its libraries take quadratic time for more (50,000: 9 to 21 s)."""

RAW_TAGS = ("script", "style", "iframe", "noembed", "noframes")
"""Elements whose content, up to their end tag, is neither markup nor shown."""
TEXT_TAGS = ("title", "textarea", "xmp", "plaintext")
"""Elements whose content is text up to their end tag, that of the last up to the end: no tag, no comment begins there."""
NO_SCRIPT = "noscript"
"""The element that browsers skip to its end tag, whatever begins within; its text for other readers is read up to there."""
FOREIGN = "svg"
"""Stands in a token for a start tag that was read by the rules of foreign content (`svg`, `math`)."""

CDATA = "cdata"
"""Stands in a token without a tag for the text of a CDATA section."""

_WS = r"\t\n\f\r "
_ATTRIBUTES = (
    rf"(?:[{_WS}]++[^{_WS}/>=\"']++=\"[^\"]*+\")*+"  # the usual form first; what follows reads any, this one too
    rf"(?:[{_WS}/]++|[^{_WS}/>][^{_WS}/>=]*+"
    rf"(?:[{_WS}]*+=[{_WS}]*+(?:\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z)|[^{_WS}>\"'][^{_WS}>]*+)?+)?+)*+"
)
_TEXT = r"(?:[^<]++|<(?![a-zA-Z!?]|/[\s\S]))*+"
_COMMENT = r"!--(?:-?>|(?:[^-]++|-(?!-!?>))*+(?:--!?>|\Z))"
_MARKUP = rf"(?:{_COMMENT}|(/?[a-zA-Z][^{_WS}/>]*+)({_ATTRIBUTES})(?:>|\Z)|[!?/][^>]*+(?:>|\Z)|)"


def _expression(*kinds: str) -> re.Pattern[str]:
    """Returns what cuts markup into tokens, where some elements are of text alone."""
    rests: dict[str, list[str]] = {}
    for kind in sorted(kinds):
        rests.setdefault(kind[0], []).append(kind[1:])
    # By first letters in sets: an alternative that ignores case is tried in full where a set is passed over at a glance.
    named = "|".join(f"[{first}{first.upper()}](?ai:{'|'.join(names)})" for first, names in rests.items())
    text = rf"(?:[^<]++|<(?!/(?ai:\1)[{_WS}/>]))*+"
    return re.compile(rf"<(?=({named})[{_WS}/>]|){_MARKUP}((?(1){text}|{_TEXT}))")


_TOKEN = _expression(*RAW_TAGS, *TEXT_TAGS, NO_SCRIPT)
_TOKEN_OR_FOREIGN = _expression(*RAW_TAGS, *TEXT_TAGS, NO_SCRIPT, "svg", "math")
_TOKEN_WITHIN = _expression(*RAW_TAGS, *TEXT_TAGS[:-1])  # within "noscript", which is cut into tokens by itself
_TOKEN_OF_ANY = re.compile(rf"<{_MARKUP}({_TEXT})")
_BREAKING = "|".join(sorted(name for name, rule in RULES.items() if rule.bits & (BREAKOUT | FOREIGN_ROOT)))
_PLAIN_FOREIGN = re.compile(  # nothing that leaves foreign content, nests it or holds HTML within
    rf"(?:[^<]++|<(?:/?(?!(?ai:{_BREAKING}|font|foreignobject|title|desc)[{_WS}/>])[a-zA-Z][^{_WS}/><]*+(?:[^<>\"']|\"[^<\"]*+\"|'[^<']*+')*+>"
    rf"|(?ai:(title|desc))(?:[{_WS}][^<>/]*+)?+>[^<]*+</(?ai:\1)[{_WS}]*+>|!--[^-<>](?:[^-<]|-(?!-))*+-->))*+"
)
_PLAIN_DEPTH = 200
_ESCAPED_SCRIPT = re.compile(rf"<!--[\s\S]*?<script[{_WS}/>]", re.IGNORECASE | re.ASCII)
_SCRIPT = re.compile(
    rf"(?ai:(?:[^<]++|<(?!/script[{_WS}/>]|!--)|<!(?=--)(?:[^<-]++|-(?!->)|<(?!/?script[{_WS}/>])"
    rf"|<script[{_WS}/>](?:[^<-]++|-(?!->)|<(?!/script[{_WS}/>]))*+(?:</script[{_WS}/>])?+)*+(?:-->)?+)*+)"
)
"""Content of a script: after `<!--` and `<script`, one more end tag belongs to it."""
_ANY_MARKUP = re.compile(rf"<(?:(?ai:(script|style))[{_WS}/>](?:[^<]++|<(?!/(?ai:\1)[{_WS}/>]))*+|{_COMMENT}|[^>]*+>?+)")
_CDATA = "<![CDATA["
_FIRST_TEXT = re.compile(_TEXT)
# Every run of characters is consumed, whether it has a value or not: a name that is tried from each of its letters is quadratic.
_ATTRIBUTE = re.compile(
    rf"([^{_WS}/>][^{_WS}/>=]*+)"
    rf"(?:[{_WS}]*+=[{_WS}]*+(?:\"([^\"]*+)\"?+|'([^']*+)'?+|([^{_WS}>\"'][^{_WS}>]*+))?+)?+"
)
_ZEROS_BEHIND = re.compile("<\0++")
_END_TAG = re.compile("</[a-zA-Z\0]*+")
_START_TAG = re.compile(rf"<[a-zA-Z][^{_WS}/>]*+({_ATTRIBUTES})")
_VOID = "area base br col embed hr img input link meta param source track wbr"
VOID_TAGS = frozenset(_VOID.split())

type Token = tuple[str, str, str, str]
"""Name of an element of text alone, `FOREIGN` or `""`; name of a tag as written (`div`, `/div`) or `""`; attributes; text."""


def tokens_of(html: str) -> list[Token]:
    """Returns the markup from its first `<` on, token by token, bounded by `MAX_HTML` and `MAX_TAGS`."""
    return tokens_of_bounded(bounded(html))


def tokens_of_bounded(html: str) -> list[Token]:
    """Returns the same for what `bounded` returned: to count the tags of a page takes as long as a tenth of this."""
    found: list[Token] = []
    for token in _TOKEN_OR_FOREIGN.findall(html, len(text_before(html))):
        kind, name, attributes, text = token
        if not kind or not name:
            found.append(token)
            continue
        kind = kind.lower()
        if kind == NO_SCRIPT:
            found += _tokens_within(name, attributes, text)
        elif kind == "svg":
            if attributes.endswith("/") or _is_involved(text):
                return _tokens_in_context(html)
            first = _FIRST_TEXT.match(text)
            stop = first.end() if first else 0
            found.append(("", name, attributes, text[:stop]))
            found += [
                (FOREIGN if name and name[0] != "/" else "", name, values, after)
                for name, values, after in _TOKEN_OF_ANY.findall(text, stop)
            ]
        elif kind in {"math", "plaintext"} or (kind == "script" and "<!--" in text and _goes_on(text)):
            return _tokens_in_context(html)
        else:
            found.append((kind, name, attributes, text))
    return found


def _goes_on(script: str) -> bool:
    """Returns whether the end tag behind a script's content belongs to its content."""
    if not _ESCAPED_SCRIPT.search(script):
        return False
    found = _SCRIPT.match(script + "</script>")
    return found is None or found.end() != len(script)


def _is_involved(foreign: str) -> bool:
    """Returns whether more has to be known of foreign content than its tags one by one."""
    depth = foreign.count("<") - foreign.count("</") - foreign.count('"/>')
    return depth > _PLAIN_DEPTH or _PLAIN_FOREIGN.fullmatch(foreign) is None


def _tokens_within(name: str, attributes: str, text: str) -> Iterator[Token]:
    """Yields the tokens of a `noscript`."""
    first = _FIRST_TEXT.match(text)
    stop = first.end() if first else 0
    yield NO_SCRIPT, name, attributes, text[:stop]
    for kind, inner, values, after in _TOKEN_WITHIN.findall(text, stop):
        yield kind.lower(), inner, values, after


def _tokens_in_context(html: str) -> list[Token]:  # noqa: C901  one step a kind of markup
    """Does the work of `tokens_of` where it depends on the open elements what a token is."""
    found: list[Token] = []
    elements = OpenElements()
    within = False
    place = len(text_before(html))
    while place < len(html):
        foreign = elements.is_foreign
        if elements.allows_cdata and html.startswith(_CDATA, place):
            start = place + len(_CDATA)
            stop = html.find("]]>", start)
            stop = len(html) if stop < 0 else stop
            found.append((CDATA, "", "", html[start:stop]))
            text = _FIRST_TEXT.match(html, stop + 3)
            place = text.end() if text else len(html)
            found.append(("", "", "", text[0] if text else ""))
            continue
        token = (_TOKEN_OF_ANY if foreign else _TOKEN).match(html, place)
        if token is None:
            break
        kind, name, attributes, text_after = token.groups("") if not foreign else ("", *token.groups(""))
        place, start = token.end(), token.start(token.re.groups)
        kind, bare = kind.lower() if name else "", name.lower()
        if kind == "script" and (stop_at := _SCRIPT.match(html, start)):
            place = stop_at.end()
            text_after = html[start:place]
        elif kind == "plaintext":
            place, text_after = len(html), html[start:]
        if kind == NO_SCRIPT:
            found += _tokens_within(name, attributes, text_after)
            within = True
            continue
        if within and bare == f"/{NO_SCRIPT}":
            pass
        elif bare[:1] == "/":
            elements.end(bare[1:])
        elif bare:
            rule = RULES.get(bare)
            if foreign and not breaks_out(bare, rule.bits if rule else 0, attributes):
                kind = FOREIGN
            elements.start(bare, attributes, foreign=foreign, closed=is_closed(attributes))
        within = False
        found.append((kind, name, attributes, text_after))
    return found


def is_closed(attributes: str) -> bool:
    """Returns whether a tag with these attributes ends with `/>`; a `/` may belong to a value."""
    if not attributes.endswith("/"):
        return False
    end = 0
    for attribute in _ATTRIBUTE.finditer(attributes):
        end = attribute.end()
    return end < len(attributes)


def text_before(html: str) -> str:
    """Returns what stands before the first token."""
    first = _FIRST_TEXT.match(html)
    return first[0] if first else ""


def text_beyond(html: str, end: int) -> str:
    """Returns the text behind the place where `bounded` cuts a page off. Linear."""
    texts = _ANY_MARKUP.split(html[end:MAX_HTML])[::2]
    return " ".join(" ".join(map(unescaped, texts)).split())


def iter_tags(html: str) -> Iterator[tuple[str, str]]:
    """Yields name (`div`, `/div`) and attributes as written of each tag but void and raw-text ones, bounded as `tokens_of`.

    What looks like tags in elements of text is among them: within `svg`, they are.
    """
    for kind, name, attributes, text in tokens_of(html):
        if name and kind not in RAW_TAGS and name.lower() not in VOID_TAGS:
            yield name.lower(), attributes
        for inner, values, _ in _TOKEN_OF_ANY.findall(text) if name and kind and kind not in RAW_TAGS and "<" in text else ():
            if inner and inner.lower() not in VOID_TAGS:
                yield inner.lower(), values


def attribute_values(attributes: str, names: Iterable[str]) -> list[str]:
    """Returns some attributes (lower-case names) of a tag as it was written, values not unescaped, `""` for what is not there.

    The first of repeated ones counts. Of longer attributes `MAX_ATTRIBUTES` characters are read.
    """
    values = attributes_of(attributes)
    return [values.get(name, "") for name in names]


def attributes_of(attributes: str) -> dict[str, str]:
    """Returns lower-case name → value of a tag's attributes, values not unescaped; the first of repeated ones, bounded."""
    found = reversed(_ATTRIBUTE.findall(attributes[:MAX_ATTRIBUTES]))
    return {name.lower(): double or single or bare for name, double, single, bare in found}


def text_of(text: str) -> str:
    """Returns text of the markup as a reader sees it: unescaped, white space folded."""
    return " ".join(unescaped(text).split())


def text_of_pieces(pieces: Sequence[str]) -> str:
    """Returns pieces of text between tags as a reader sees them: no character reference goes on behind a tag."""
    text = "".join(pieces)
    if "&" in text:
        text = "".join(map(unescaped, pieces))
    return " ".join(text.split())


def unescaped(text: str) -> str:
    """Returns text of the markup with the characters that its references name."""
    return unescape(text) if "&" in text else text


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
    if token[1] and token[1].lower() == "script":
        text = text.replace("\0", "\ufffd")
    elif token[1]:  # no end tag may come about where browsers see none
        text = _END_TAG.sub(lambda found: found[0].replace("\0", "\ufffd"), text)
        if token[1].lower() == NO_SCRIPT:
            text = _TOKEN_WITHIN.sub(_marked, text)
    return markup.replace("\0", "\ufffd") + text


def bounded(html: str) -> str:
    """Returns as much of a page as is read: `MAX_HTML` characters and `MAX_TAGS` tags."""
    html = html[:MAX_HTML]
    return html if len(html) <= MAX_TAGS or html.count("<") <= MAX_TAGS else "<".join(html.split("<", MAX_TAGS)[:MAX_TAGS])


def with_few_attributes(html: str) -> str:
    """Returns the markup without what a tag has beyond `MOST_ATTRIBUTES` attributes. Linear."""
    return html if len(html) <= 2 * MOST_ATTRIBUTES else _START_TAG.sub(_shortened, html)


def _shortened(tag: re.Match[str]) -> str:
    if len(tag[1]) <= 2 * MOST_ATTRIBUTES:  # an attribute and what parts it from the next
        return tag[0]
    for number, attribute in enumerate(_ATTRIBUTE.finditer(tag[1]), 1):
        if number == MOST_ATTRIBUTES:
            return tag[0][: tag.start(1) - tag.start() + attribute.end()]
    return tag[0]

"""What the attributes of a tag do to its element: hidden, shown again, text of its own, a document within.

No style sheet is read: of CSS, `style` attributes count alone. Both readers of markup take this from here.
"""

import re
from base64 import b64decode
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import unquote_to_bytes

from gatewayfilter.documents.html.character_references import unescape
from gatewayfilter.documents.html.tags import attributes_of

(HIDES, INVISIBLE, VISIBLE, DISPLAYED, TINY, FADED) = (1, 2, 4, 8, 16, 32)
"""Nothing within is shown; nothing but what is made visible again; is so; is displayed although it is hidden by its nature;
nothing within is shown but what has a size, a color of its own again."""
HIDING = HIDES | INVISIBLE | TINY | FADED

NEVER_RENDERED = frozenset({"template", "dialog", "datalist", "canvas", "video", "audio", "rp", "noscript", "meter", "progress"})
"""Elements whose content is not shown."""
NEVER_RENDERED_SVG = frozenset(
    {"title", "desc", "metadata", "defs", "script", "style", "symbol", "clippath", "mask", "pattern", "marker"} | {"mphantom"}
)
UNUSUAL_FOREIGN = frozenset({"iframe", "noembed", "noframes", "noscript", "plaintext", "template", "textarea", "xmp"})
"""Names of HTML elements of text alone, which are elements like any other in `svg` and `math`: hardly any page has them there."""
SPECIAL = frozenset("template dialog details select option optgroup input textarea object embed frame iframe".split())  # noqa: SIM905  reads best
"""Elements of which `special` is asked; of `img` only where `src` begins as `DATA_PICTURE`."""
UNLABELLED = frozenset({"hidden", "password", "checkbox", "radio", "file", "range", "color"})
"""Types of an `input` whose value is not shown."""
DATA_PICTURE = "data:image/svg"
MAX_SPECIAL = 8_000
"""Elements of `SPECIAL` with attributes of which `special` is asked; later ones are taken for such without."""
MAX_STYLES = 200_000
"""Characters of different styles of a page that may hide and are parsed; later ones are taken for such that do not.

Deviation: the Python reader parses them all, in more time.
"""
MAX_DOCUMENTS = 50
"""Documents within a page that are taken from it."""
MAX_NESTED = 500_000
"""Characters of a document within another that are read."""

_SIGNS = re.compile(
    r"(?ai:none|visib|opacity|hidden|block|flex|grid|inline|font-size|clip|scale|transparent|height\s*:\s*0|-[0-9]{4})|[\\&]|/\*"
)
_NEGATIVE = re.compile("-[0-9]{4}")
_NO_HEIGHT = re.compile(r"height\s*:\s*0")
_HIDDEN = re.compile(r"[\s\"'/]hidden(?:[\s=/]|\Z)")
"""Wherever an attribute of that name may stand, and elsewhere."""
_CLIPPED = re.compile(
    r"(?ai:(?:^|[;\s])clip(?:-path)?\s*:\s*(?:rect\(\s*([01])(?:px)?\s*+,?\s*+\1(?:px)?\s*+,?\s*+\1(?:px)?\s*+,?\s*+\1(?:px)?\s*\)"
    r"|inset\(\s*(?:[5-9][0-9]|100)%\s*\)|circle\(\s*0(?:px|%)?\s*\))|(?:^|[;\s])transform\s*:\s*scale\(\s*0\s*[,)])"
)
"""A clip or a size of nothing; what stands in parentheses is taken out of a style before it is parsed."""
_APART = re.compile(r"/\*[\s\S]*?(?:\*/|\Z)|\"[^\"]*+\"?|'[^']*+'?|\([^()]*+\)?")
_LENGTH = re.compile(r"(-?)([0-9]*)(?:\.([0-9]*))?([a-z%]*)")
_USUAL_STYLE = 60
"""Characters of a style that is kept in mind with what it does: most pages hide by the same few."""
_BLANKS = " \t\n\r\f"
_TINY_PX = 2
_SIZES = ("height", "max-height", "width", "max-width")
_ENLARGING = frozenset({"min-height", "min-width", "padding", "padding-top", "padding-bottom"})
_MOVING = frozenset({"transform", "translate", "animation"})
_MARGINS = frozenset({"margin-left", "margin-top", "text-indent"})
_PLACES = frozenset({"left", "top", "right", "bottom"})
_FAR = 2000
"""Pixels beyond which an element is out of sight; a row of pictures is moved by less."""
_DATA = re.compile(
    r"\s*data:\s*(text/html|image/svg\+xml|application/xhtml\+xml|text/xml|text/plain|)((?:;[^,;]*)*),", re.IGNORECASE
)
_SANDBOXED = re.compile(r"<(/?)(?=noscript)", re.IGNORECASE)
_REFRESH = re.compile(r"[^=]*=\s*[\"']?(data:[\s\S]*)", re.IGNORECASE)


class Special(NamedTuple):
    """What there is to an element besides its tag: whether it hides its content, texts that it shows, documents within."""

    hides: bool = False
    labels: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    shadow: bool = False


NOTHING: Final = Special()


def effect_of(attributes: str) -> int:
    """Returns what `hidden` and `style` do, 0 for nothing."""
    lower = attributes.lower()
    named = ("hidden" in lower and _HIDDEN.search(lower)) or "popover" in lower
    if not named and not ("style" in lower and _may_matter(lower)):
        return 0
    values = attributes_of(attributes)
    found = style_effect(values["style"]) if "style" in values else 0
    if found & DISPLAYED:
        return found
    if "popover" in values or ("hidden" in values and values["hidden"].lower() != "until-found"):
        found |= HIDES
    return found


def _may_matter(lower: str) -> bool:
    """Returns whether `_SIGNS` may find something, in a sixth of its time."""
    return (
        "none" in lower
        or "visib" in lower
        or "opacity" in lower
        or "hidden" in lower
        or "block" in lower
        or "font-size" in lower
        or "inline" in lower
        or "flex" in lower
        or "grid" in lower
        or "clip" in lower
        or "scale" in lower
        or "transparent" in lower
        or "&" in lower
        or "/*" in lower
        or "\\" in lower
        or ("-" in lower and _NEGATIVE.search(lower) is not None)
        or ("height" in lower and _NO_HEIGHT.search(lower) is not None)
    )


def style_effect(style: str) -> int:
    """Returns what a `style` attribute does."""
    if not _SIGNS.search(style):
        return 0
    return _usual_effect(style) if len(style) <= _USUAL_STYLE else _effect(style)


@lru_cache(maxsize=500)
def _usual_effect(style: str) -> int:
    return _effect(style)


def _effect(style: str) -> int:
    style = unescape(style) if "&" in style else style
    declared = _declared(style)
    found = 0
    display = declared.get("display", "")
    visibility = declared.get("visibility", "")
    if display == "none" or _is_out_of_sight(declared) or _CLIPPED.search(style):
        found = HIDES
    elif display:
        found = DISPLAYED
    if "font-size" in declared and _is_tiny(declared["font-size"]):
        found |= TINY
    if declared.get("color") == "transparent" and "background" not in style and "shadow" not in style:
        found |= FADED
    if visibility in {"hidden", "collapse"}:
        found |= INVISIBLE
    elif visibility == "visible":
        found |= VISIBLE
    return found


def _declared(style: str) -> dict[str, str]:
    """Returns property → value of a style, in lower case; what is `!important` counts before what is not."""
    declared: dict[str, str] = {}
    important: dict[str, str] = {}
    for declaration in _APART.sub(" ", style).split(";"):
        name, _, value = declaration.partition(":")
        value, _, mark = value.partition("!")
        value = value.strip(_BLANKS).lower()
        if value:
            (important if mark.strip(_BLANKS).lower() == "important" else declared)[name.strip(_BLANKS).lower()] = value
    return declared | important


def undoes(style: str, hidden_by: int) -> bool:
    """Returns whether the style of an element shows it again where another one is `TINY` or `FADED` that it stands in."""
    declared = _declared(unescape(style))
    if hidden_by == TINY:
        size = declared.get("font-size", declared.get("font", ""))
        return size != "" and not _is_tiny(size) and size[-1] not in "%m"  # "em", too: a share of nothing is nothing
    return hidden_by == FADED and declared.get("color", "transparent") not in {"transparent", "inherit"}


def _is_tiny(value: str) -> bool:
    size, unit = _length(value)
    return size == 0 or (size is not None and 0 <= size < _TINY_PX and unit in {"px", "pt"})


def _is_out_of_sight(declared: dict[str, str]) -> bool:
    if "opacity" in declared and _length(declared["opacity"])[0] == 0:
        return True
    if declared.get("overflow") in {"hidden", "clip"} and any(_is_zero(declared, name) for name in _SIZES):
        return declared.keys().isdisjoint(_ENLARGING)
    names = _MARGINS if declared.get("position") not in {"absolute", "fixed", "relative"} else _MARGINS | _PLACES
    is_far = any((_length(declared[name])[0] or 0) <= -_FAR for name in names & declared.keys())
    return is_far and declared.keys().isdisjoint(_MOVING)


def _is_zero(declared: dict[str, str], name: str) -> bool:
    return name in declared and _length(declared[name])[0] == 0


def _length(value: str) -> tuple[float | None, str]:
    found = _LENGTH.fullmatch(value)
    if found is None or not (found[2] or found[3]):
        return None, ""
    size = float(f"{found[2][-9:] or 0}.{(found[3] or '0')[:9]}") + (1e9 if len(found[2]) > 9 else 0)
    return (-size if found[1] else size), found[4]


def meta_of(attributes: str) -> tuple[str, str, tuple[str, ...]]:
    """Returns lower-case name, text and documents within of a `meta` element, as far as they can matter."""
    lower = attributes.lower()
    documents = special("meta", attributes).documents if "refresh" in lower and "data:" in lower else ()
    if "description" not in lower and "keywords" not in lower and "title" not in lower:
        return "", "", documents
    values = attributes_of(attributes)
    name = values.get("name") or values.get("property") or ""
    return name.lower(), " ".join(unescape(values.get("content", "")).split()), documents


def special(name: str, attributes: str) -> Special:
    """Returns what there is to an element of `SPECIAL`, `img` or `meta`."""
    values = attributes_of(attributes)
    match name:
        case "template":
            shadow = values.get("shadowrootmode", "").lower() in {"open", "closed"}
            return Special(hides=not shadow, shadow=shadow)
        case "dialog" | "details":
            return Special(hides="open" not in values)
        case "select":
            return Special(hides="multiple" not in values and values.get("size", "") in {"", "0", "1"})
        case "option" | "optgroup":
            return Special("selected" not in values, _shown(values.get("label", "")))
        case "input":
            if values.get("type", "").lower() in UNLABELLED:
                return NOTHING
            return Special(labels=_shown(values.get("alt", ""), values.get("value", ""), values.get("placeholder", "")))
        case "textarea":
            return Special(labels=_shown(values.get("placeholder", "")))
        case "iframe" if "srcdoc" in values:
            return Special(documents=_readable(_inner(values)))
        case "meta":
            found = _REFRESH.match(unescape(values.get("content", "")))
            return Special(documents=_document(found[1])) if found else NOTHING
    reference = values.get("data" if name == "object" else "src", "")
    return Special(documents=_document(unescape(reference[:MAX_NESTED])))


def _inner(values: dict[str, str]) -> str:
    """Returns the document of a `srcdoc`; where no script may run in it, `noscript` is an element like any other."""
    inner = unescape(values["srcdoc"][:MAX_NESTED])
    return inner if "allow-scripts" in values.get("sandbox", "allow-scripts").lower() else _SANDBOXED.sub(r"<\1x-", inner)


def _shown(*values: str) -> tuple[str, ...]:
    return tuple(text for value in values if (text := " ".join(unescape(value).split())))


def _readable(html: str) -> tuple[str, ...]:
    return (html,) if html else ()


def _document(url: str) -> tuple[str, ...]:
    """Returns the markup that a `data:` URL holds."""
    found = _DATA.match(url)
    if found is None:
        return ()
    body = unquote_to_bytes(url[found.end() :])
    if "base64" in found[2].lower():
        try:
            body = b64decode(body + b"===")
        except ValueError:
            return ()
    text = body.decode("utf-8", "replace").replace("\0", "\ufffd")
    return _readable(text if found[1] and found[1].lower() != "text/plain" else f"<plaintext>{text}")

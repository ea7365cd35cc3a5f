"""Which blocks of a page are its main text: by text density, or as resiliparse sees it (`classify.extractor`).

resiliparse works on a DOM and is quadratic in the attributes of a tag and in the depth of nesting, so that a few lines of
markup would hold the learner for minutes. It is asked only about pages within `MAX_DEPTH` and `MAX_ATTRIBUTES`; of others,
and of those where it finds nothing, the main text is found by density.
"""

import re

from resiliparse.extract.html2text import extract_plain_text

from gatewayfilter.documents.html.html_text import HtmlText
from gatewayfilter.documents.html.tags import bounded, iter_tags
from gatewayfilter.settings import Extractor

MAX_DEPTH = 300
"""Elements inside each other; real pages have up to 60."""
MAX_ATTRIBUTES = 500
"""Separators in one tag, which bound its attributes."""
_SEPARATORS = re.compile(r"[\t\n\f\r /]+")
_SEPARATED_TEXT = 1_000
"""Shorter attributes cannot be many enough to matter."""
_OPTIONAL_END = frozenset(
    ["p", "li", "dt", "dd", "td", "th", "tr", "tbody", "thead", "tfoot", "option", "optgroup", "colgroup", "caption", "rt", "rp"]
)


def split_main(html: str, page: HtmlText, extractor: Extractor) -> tuple[list[str], list[str]]:
    """Returns the texts of the main blocks and of the rest, in order; no block is lost. Linear in the page.

    Args:
        html: the markup, as `read_html` got it; no more of it is read here.
        page: what `read_html` made of it.
        extractor: who chooses.
    """
    if extractor is Extractor.RESILIPARSE and is_tame(html):
        lines = _main_lines(html)
        main = [block.text for block in page.blocks if block.text in lines]
        if main:
            return main, [block.text for block in page.blocks if block.text not in lines]
    return page.split_main()


def is_tame(html: str) -> bool:
    """Returns whether a DOM parser can be trusted with a page: no tag of many attributes, no deep nesting.

    Depth is never underestimated: an end tag closes nothing but the innermost element, after those whose end may be left out.
    """
    open_tags: list[str] = []
    for name, attributes in iter_tags(html):
        if len(attributes) > _SEPARATED_TEXT and len(_SEPARATORS.findall(attributes)) > MAX_ATTRIBUTES:
            return False
        if not name.startswith("/"):
            if open_tags and name == open_tags[-1] and name in _OPTIONAL_END:
                continue
            open_tags.append(name)
            if len(open_tags) > MAX_DEPTH:
                return False
            continue
        _close(open_tags, name[1:])
    return True


def _close(open_tags: list[str], name: str) -> None:
    top = len(open_tags)
    while top and open_tags[top - 1] != name and open_tags[top - 1] in _OPTIONAL_END:
        top -= 1
    if top and open_tags[top - 1] == name:
        del open_tags[top - 1 :]


def _main_lines(html: str) -> frozenset[str]:
    text = extract_plain_text(bounded(html), preserve_formatting=True, main_content=True, list_bullets=False, alt_texts=False)
    return frozenset(" ".join(line.split()) for line in text.splitlines())

"""Proposals of selectors for an element that somebody has picked on a page, from the most specific to the most general."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from gatewayfilter.extraction.page_outline import OutlineElement, PageOutline, clean
from gatewayfilter.extraction.selectors import RulePage, XPathSelector

_MOST_PROPOSALS: Final = 7
_MOST_CANDIDATES: Final = 24
_MOST_MARKED: Final = 1_000
"""Elements that a selector may match and still be marked on the page."""
_MOST_XPATH: Final = 3
_MOST_COMPARED: Final = 200
_LONGEST_TEXT: Final = 500
_LONGEST_VALUE: Final = 160
_MOST_ATTRIBUTES: Final = 10
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,60}")
_VALUE: Final = re.compile(r"[\w:./-]{1,80}", re.ASCII)
_TELLING: Final = ("property", "itemprop", "name", "rel", "role", "data-testid")
_NAMES: Final = {
    "h1": "title",
    "title": "title",
    "time": "date",
    "img": "image",
    "a": "link",
    "meta": "meta",
    "address": "author",
}
_ATTRIBUTES: Final = {"meta": "content", "img": "src", "time": "datetime", "a": "href"}
_LANDMARKS: Final = frozenset({"article", "main", "header", "footer", "nav", "aside"})
_WITHOUT_TEXT: Final = frozenset({"meta", "img"})


@dataclass(frozen=True, slots=True)
class Proposal:
    """A selector for the picked element.

    Attributes:
        way: css or xpath.
        count: elements of the page that it matches.
    """

    way: str
    expression: str
    count: int


@dataclass(frozen=True, slots=True)
class PickedElement:
    """An element that somebody has picked.

    Attributes:
        text: the beginning of its text.
        path: number, tag and label of the elements around it, the outermost first.
        attributes: names and values that a field could take.
        fields: selectors for a field.
        links: selectors for links: of the element itself, or of those within it.
        name: what a field for it could be called.
        attribute: what a field would take of it, `""` for its text.
    """

    number: int
    tag: str
    label: str
    text: str
    path: tuple[tuple[int, str, str], ...]
    attributes: tuple[tuple[str, str], ...]
    fields: tuple[Proposal, ...]
    links: tuple[Proposal, ...]
    name: str
    attribute: str


class SelectorFinder:
    """Finds selectors on one page.

    Args:
        page: as rules read it.
        outline: of the same page.
    """

    def __init__(self, page: RulePage, outline: PageOutline) -> None:
        self._page = page
        self._outline = outline
        self._numbers = {node: number for number, node in enumerate(outline.nodes)}

    def marked(self, expression: str) -> list[int]:
        """Returns the numbers of the elements that a CSS selector matches; none where it is not valid, or matches very many."""
        found = self._matches(expression)
        if found is None or len(found) > _MOST_MARKED:
            return []
        return [number for node in found[:] if (number := self._numbers.get(node)) is not None]

    def picked(self, number: int) -> PickedElement | None:
        """Returns an element with its selectors, `None` where there is no such element."""
        if not 0 <= number < len(self._outline.nodes):
            return None
        element, node = self._outline.elements[number], self._outline.nodes[number]
        names = [name for name in node.attribute_names[:100] if _NAME.fullmatch(name) and name not in {"id", "class", "style"}]
        attributes = [(name, clean(node.getattr(name) or "")[:_LONGEST_VALUE]) for name in names[:_MOST_ATTRIBUTES]]
        fields = self._proposals(node, _candidates(node))
        text = clean((node.text or "")[: 8 * _LONGEST_TEXT])[:_LONGEST_TEXT]
        return PickedElement(
            number,
            element.tag,
            element.label,
            text if element.tag != "meta" else element.text,
            tuple((around.number, around.tag, around.label) for around in self._outline.path(number)),
            tuple(attributes),
            (*fields, *self._xpaths(node, element, text)),
            tuple(self._links(node, element, fields)),
            _field_name(node, element),
            _ATTRIBUTES.get(element.tag, "") if element.tag in _WITHOUT_TEXT or not text.strip() else "",
        )

    def _matches(self, expression: str) -> Any:
        try:
            return self._page.css_tree.query_selector_all(expression)
        except Exception:  # noqa: BLE001  not a valid selector: what the rule says of it is shown with the rule
            return None

    def _proposals(self, node: Any, candidates: Iterable[str]) -> list[Proposal]:
        known: dict[str, int] = {}
        for expression in list(dict.fromkeys(candidates))[:_MOST_CANDIDATES]:
            found = self._matches(expression) if node.matches(expression) else None
            if found:
                known[expression] = len(found)
        chosen: dict[int, str] = {}
        for expression, count in known.items():  # of selectors with the same matches, the first: it is the plainest
            chosen.setdefault(count, expression)
        if 1 not in chosen and self._outline.allows_positions and node.matches(path := self._path(node)):
            found = self._matches(path)
            chosen[len(found)] = path
        return [Proposal("css", chosen[count], count) for count in sorted(chosen)][:_MOST_PROPOSALS]

    def _path(self, node: Any) -> str:
        """Returns a selector by place: from the nearest element on that an id, a class or its tag singles out."""
        steps: list[str] = []
        while node is not None and (node.tag or "#")[0] != "#":
            if steps and (alone := self._alone(node)):
                steps.append(alone)
                break
            steps.append(_step(node))
            node = node.parent
        return " > ".join(reversed(steps))

    def _alone(self, node: Any) -> str:
        identity = _plain(node.getattr("id"))
        signs = [f"#{identity}"] if identity else [f"{node.tag}.{name}" for name in _classes(node)[:2]]
        signs += [node.tag] if node.tag in _LANDMARKS or node.tag == "body" else []
        return next((sign for sign in signs if (found := self._matches(sign)) is not None and len(found) == 1), "")

    def _links(self, node: Any, element: OutlineElement, fields: list[Proposal]) -> list[Proposal]:
        if element.tag == "a":
            return [proposal for proposal in fields if proposal.way == "css"]
        if node.query_selector("a[href]") is None:
            return []
        counted: dict[int, Proposal] = {}
        for proposal in fields:
            found = self._matches(inner := f"{proposal.expression} a")
            if found:
                counted.setdefault(len(found), Proposal("css", inner, len(found)))
        return [counted[count] for count in sorted(counted)]

    def _xpaths(self, node: Any, element: OutlineElement, text: str) -> list[Proposal]:
        """Returns XPath expressions by which lxml finds the same: its tree may differ."""
        try:
            XPathSelector("/*").check()
            tree = self._page.xpath_tree
        except Exception:  # noqa: BLE001  without the extra, or a page that lxml cannot read, there are none
            return []
        if tree is None:
            return []
        wanted = element.text if element.tag == "meta" else " ".join(text.split())
        chosen: dict[int, str] = {}
        for expression in _xpath_candidates(node, element.tag):
            found = tree.xpath(expression)
            if any(_value(one) == wanted for one in found[:_MOST_COMPARED]):
                chosen.setdefault(len(found), expression)
        return [Proposal("xpath", chosen[count], count) for count in sorted(chosen)][:_MOST_XPATH]


def _value(found: Any) -> str:
    text = "".join(found.itertext()) if hasattr(found, "itertext") else str(found)
    return " ".join(clean(text[: 8 * _LONGEST_TEXT])[:_LONGEST_TEXT].split())


def _candidates(node: Any) -> Iterator[str]:
    tag = node.tag
    if identity := _plain(node.getattr("id")):
        yield f"#{identity}"
    for name in _TELLING:
        if _VALUE.fullmatch(value := node.getattr(name) or ""):
            yield f'{tag}[{name}="{value}"]'
    classes = _classes(node)
    yield from (f"{tag}.{name}" for name in classes)
    if classes:
        yield f"{tag}.{'.'.join(classes[:3])}"
    yield from _below(node, f"{tag}.{classes[0]}" if classes else tag)
    yield tag


def _below(node: Any, inner: str) -> Iterator[str]:
    """Yields selectors by what is around an element: the parent, then the next two with an id, a class or a name of their own."""
    parent, named, steps = node.parent, 0, 0
    while parent is not None and named < 3 and steps < 20:
        tag, sign = parent.tag or "", " > " if not steps else " "
        if identity := _plain(parent.getattr("id") if hasattr(parent, "getattr") else ""):
            yield f"#{identity}{sign}{inner}"
            return
        if classes := _classes(parent):
            yield f"{tag}.{classes[0]}{sign}{inner}"
            named += 1
        elif tag in _LANDMARKS:
            yield f"{tag}{sign}{inner}"
            named += 1
        parent, steps = parent.parent, steps + 1


def _xpath_candidates(node: Any, tag: str) -> Iterator[str]:
    end = "/@content" if tag == "meta" else ""
    if identity := _plain(node.getattr("id")):
        yield f'//*[@id="{identity}"]{end}'
    for name in _TELLING:
        if _VALUE.fullmatch(value := node.getattr(name) or ""):
            yield f'//{tag}[@{name}="{value}"]{end}'
    for name in _classes(node)[:2]:
        yield f'//{tag}[contains(concat(" ", normalize-space(@class), " "), " {name} ")]{end}'
    if not end:
        yield f"//{tag}"


def _plain(value: str | None) -> str:
    return value if value and _NAME.fullmatch(value) else ""


def _classes(node: Any) -> list[str]:
    value = node.getattr("class") if hasattr(node, "getattr") else ""
    return [name for name in (value or "")[:1_000].split()[:8] if _NAME.fullmatch(name)]


def _step(node: Any) -> str:
    """Returns the tag of an element, with its place among those of its tag where there are several."""
    place, before, behind = 1, node.prev_element, node.next_element
    while before is not None:
        place += before.tag == node.tag
        before = before.prev_element
    while place == 1 and behind is not None:
        if behind.tag == node.tag:
            return f"{node.tag}:nth-of-type(1)"
        behind = behind.next_element
    return f"{node.tag}:nth-of-type({place})" if place > 1 else str(node.tag)


def _field_name(node: Any, element: OutlineElement) -> str:
    for name in ("itemprop", "property", "name"):
        value = (node.getattr(name) or "").rpartition(":")[2].lower()
        if _NAME.fullmatch(value):
            return value[:40]
    return _NAMES.get(element.tag, "text")

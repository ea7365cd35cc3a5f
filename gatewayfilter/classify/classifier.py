"""The classifier: a page's bytes in, category, score and evidence out. Implements `interfaces.Classify`."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from gatewayfilter.classify.imitated_services import ImitatedServices
from gatewayfilter.classify.known_content import KnownContent, content_key
from gatewayfilter.classify.lexicon.lexicon import Lexicon
from gatewayfilter.classify.lexicon.scanner import Scanner
from gatewayfilter.classify.login_clone import CATEGORY as CLONE_CATEGORY
from gatewayfilter.classify.login_clone import MAX_LENGTH as MAX_CLONE_LENGTH
from gatewayfilter.classify.login_clone import find_login_clone, may_be_login_clone
from gatewayfilter.classify.models.linear_model import LinearModel
from gatewayfilter.classify.models.text_model import TextModel
from gatewayfilter.classify.normalize.views import changed_lines
from gatewayfilter.classify.passages import LONG_PAGE, Passage, densest
from gatewayfilter.classify.score import Judge, Judgement, Sum, ZoneHits
from gatewayfilter.classify.score_adjustment import as_login_clone, is_grey, with_certainty, with_opinion, with_passage
from gatewayfilter.classify.zones import PageText, page_text, plain_text
from gatewayfilter.documents.encoding.charset import Decoded, decode, decode_as_labelled
from gatewayfilter.documents.html.markup import read_markup
from gatewayfilter.documents.page_parts import HTML_TYPES, PageParts, is_html_document, parts_from, parts_of
from gatewayfilter.documents.pdf_text import is_pdf, pdf_text
from gatewayfilter.extraction.rule_book import RuleBook
from gatewayfilter.interfaces import Page
from gatewayfilter.model import Classification
from gatewayfilter.settings import Extractor, Strictness

MAX_BODY = 2_000_000
"""Bytes of a body that are read."""
_TEXT_TYPES = frozenset({"application/json", "application/ld+json"})


@dataclass(frozen=True, slots=True)
class Explained:
    """A classification with all that it was made of.

    Attributes:
        zones: zone → its text as it was judged: positions of the evidence count in it.
        sums: category → how its score came about, before any second opinion.
    """

    classification: Classification
    zones: dict[str, str]
    sums: dict[str, Sum]


_MOST_KEPT: Final = 500_000
"""Bytes of the bodies of pages whose judgements are kept: of the last one, and of the last ones that reviews may ask about."""


class _Judged(NamedTuple):
    """A text, its judgement, and what the words of each category add up to."""

    text: PageText
    found: Classification
    sums: dict[str, Sum]


class _Read(NamedTuple):
    """A page that was judged: its text, and what was judged, which may be the text by another charset."""

    page: Page
    text: PageText
    judged: _Judged


class PageClassifier:
    """Judges pages by the words of a lexicon. Immutable, but for what it remembers; safe to share between threads.

    Args:
        lexicon: the words, or a scanner of them where there is one already.
        model: asked for a second opinion where the words are not clear; `None` where none was trained.
        extractor: separates main text from the rest of a page.
        rules: extraction rules; their fields take the place of zones; `None` for none.
        texts: reads the text and gives the certainty that decides; `None` for words alone.
        strictness: certainty from which on a page is blocked.
        services: sites whose login pages are imitated; `None` finds no login clones.
        remembers: judgements of content that `classify_page` keeps for the same content at other URLs; none changes by that.
    """

    def __init__(
        self,
        lexicon: Lexicon | Scanner,
        model: LinearModel | None = None,
        extractor: Extractor = Extractor.DENSITY,
        rules: RuleBook | None = None,
        texts: TextModel | None = None,
        strictness: Strictness = Strictness.STANDARD,
        services: ImitatedServices | None = None,
        *,
        remembers: int = 0,
    ) -> None:
        self._known = KnownContent(remembers) if remembers else None
        self._services = services
        self._rules = rules
        self._texts = texts
        self._strictness = strictness
        self._extractor = extractor
        self._model = model
        self._scanner = lexicon if isinstance(lexicon, Scanner) else Scanner(lexicon)
        self._lexicon = self._scanner.lexicon
        self._judge = Judge(self._lexicon, self._scanner)
        self._last: _Read | None = None
        self._telling: tuple[_Read, ...] = ()  # harmful or in doubt: a batch is judged before reviews ask about its pages

    @property
    def lexicon(self) -> Lexicon:
        """The words in use."""
        return self._lexicon

    def classify_page(self, page: Page) -> Classification:
        """Judges a fetched page by its bytes, headers and final URL.

        A body that is neither HTML, by its type or its beginning, nor text nor (with the extra `pdf`) PDF is judged by its
        URL alone.
        Never raises; linear in the body, of which `MAX_BODY` bytes are read; a PDF file takes 5 s at most.
        """
        key = None if self._known is None or self._counts_url(page) else content_key(page)
        if self._known is None or key is None:
            return self._judged(page).found
        if (known := self._known.get(key)) is not None:
            return known
        judged = self._judged(page)
        if not self._may_be_clone(page, judged.text):
            self._known.put(key, judged.found)
        return judged.found

    def classify_with_parts(self, page: Page) -> tuple[Classification, PageParts]:
        """Judges a page as `classify_page` does, and returns what stands on it as well; the markup is read once for both."""
        kind = page.content_type
        if kind not in HTML_TYPES or is_pdf(kind, page.body):
            return self.classify_page(page), parts_of(page)
        decoded = decode(page.body[:MAX_BODY], page.headers.get("content-type", ""))
        markup = read_markup(decoded.text)
        text = page_text(decoded.text, page.final_url, self._extractor, self._named(page), markup.texts)
        text = text.without(page.ignored) if page.ignored else text
        judged = self._by_label(page, self._classify(text, decoded.charset))
        return self._with_fields(page, self._with_login_clone(page, judged, decoded.text)), parts_from(markup)

    def classify_text(self, text: str) -> Classification:
        """Judges plain text, all of it as main text. Never raises."""
        return self._classify(plain_text(text), "").found

    def text_of(self, page: Page) -> str:
        """Returns the text of a page (title, main text, the rest) in the normal view, bounded; `""` for what is no text."""
        read = self._kept(page)
        return (self._read(page)[0] if read is None else read.text).visible()

    def explain(self, page: Page) -> Explained:
        """Judges a page as `classify_page` does, and returns what it was judged by."""
        judged = self._judged(page)
        return Explained(judged.found, judged.text.zones, judged.sums)

    def by_words(self, page: Page) -> tuple[PageText, Judgement, Lexicon]:
        """Returns the text of a page, and what the words alone make of it: what a text model is trained beside."""
        text, _ = self._read(page)
        return text, self._judge.judge(self._hits(text), text.length()), self._lexicon

    def passage_by_words(self, text: PageText) -> tuple[PageText, Judgement] | None:
        """Returns the densest passage of a long page's text and the verdict of the words alone; `None` if there is none."""
        found = self._passage(text, list(self._hits(text))) if text.length() > LONG_PAGE else None
        return None if found is None else found[1:]

    def _judged(self, page: Page) -> _Judged:
        """Judges a page, or returns what is kept of it: a review asks for all of it again."""
        read = self._kept(page)
        if read is None:
            text, charset = self._read(page)
            judged = self._by_label(page, self._classify(text, charset))
            found = self._with_fields(page, self._with_login_clone(page, judged))
            read = _Read(page, text, judged._replace(found=found))
            self._keep(read)
        return read.judged

    def _kept(self, page: Page) -> _Read | None:
        last = self._last
        if last is not None and last.page is page:
            return last
        return next((read for read in self._telling if read.page is page), None)

    def _keep(self, read: _Read) -> None:
        """Keeps a judgement as the last one, beside others before it; both are replaced as a whole: threads may share them."""
        size = len(read.page.body)
        self._last = read if size <= _MOST_KEPT else None
        if self._last is not None and (read.judged.found.harmful or read.judged.found.doubt):
            kept = [read]
            for earlier in self._telling:
                size += len(earlier.page.body)
                if size <= _MOST_KEPT:
                    kept.append(earlier)
            self._telling = tuple(kept)

    def _counts_url(self, page: Page) -> bool:
        """Returns whether the URL counts in a judgement, or what came with the page; a PDF file may be cut short by its time."""
        if page.ignored or is_pdf(page.content_type, page.body):
            return True
        if self._rules is not None and self._rules.rule_for(page.final_url) is not None:
            return True
        return any(found.hits for found in self._hits(plain_text("", page.final_url)))

    def _may_be_clone(self, page: Page, text: PageText) -> bool:
        if self._services is None or page.content_type not in HTML_TYPES or text.length() > MAX_CLONE_LENGTH:
            return False
        html = decode(page.body[:MAX_BODY], page.headers.get("content-type", "")).text
        return may_be_login_clone(html, text.title, self._services)

    def _with_login_clone(self, page: Page, judged: _Judged, html: str | None = None) -> Classification:
        """Returns the judgement of a page that takes credentials in the name of another site, else the judgement as it is."""
        text, found, _ = judged
        if self._services is None or found.harmful or CLONE_CATEGORY not in self._lexicon.categories:
            return found
        if html is None:
            if page.content_type not in HTML_TYPES or text.length() > MAX_CLONE_LENGTH:
                return found
            html = decode(page.body[:MAX_BODY], page.headers.get("content-type", "")).text
        clone = find_login_clone(html, page.final_url, text.title, text.visible(), self._services)
        return found if clone is None else as_login_clone(found, clone, self._lexicon, self._strictness)

    def _with_fields(self, page: Page, found: Classification) -> Classification:
        """Returns the judgement with the fields that an extraction rule finds; the rule has read the page already."""
        ruled = self._rules.read(page) if self._rules is not None else None
        return found if ruled is None else replace(found, fields=ruled.kept())

    def _by_label(self, page: Page, judged: _Judged) -> _Judged:
        """Returns what was judged, or the text by the charset that the page's label names, where it is harmful."""
        if judged.found.harmful:
            return judged
        labelled = decode_as_labelled(page.body[:MAX_BODY], page.headers.get("content-type", ""), judged.found.charset)
        if labelled is None:
            return judged
        other = self._classify(*self._read(page, labelled))
        return other if other.found.harmful else judged

    def _read(self, page: Page, decoded: Decoded | None = None) -> tuple[PageText, str]:
        text, charset = self._read_all(page, decoded)
        return (text.without(page.ignored) if page.ignored else text), charset

    def _read_all(self, page: Page, decoded: Decoded | None) -> tuple[PageText, str]:
        kind = page.content_type
        if is_pdf(kind, page.body):
            title, text = pdf_text(page.body)
            return plain_text(text, page.final_url, title), ""
        is_text = kind.startswith("text/") or kind in _TEXT_TYPES
        is_html = kind in HTML_TYPES or (not is_text and is_html_document(page.body))
        if not is_html and not is_text:
            return plain_text("", page.final_url), ""
        decoded = decoded or decode(page.body[:MAX_BODY], page.headers.get("content-type", ""))
        if is_html:
            return page_text(decoded.text, page.final_url, self._extractor, self._named(page)), decoded.charset
        return plain_text(decoded.text, page.final_url), decoded.charset

    def _named(self, page: Page) -> dict[str, str] | None:
        """Returns the zones that an extraction rule finds, `None` where no rule is for the page."""
        ruled = self._rules.read(page) if self._rules is not None else None
        return ruled.zones() if ruled is not None else None

    def _classify(self, page: PageText, charset: str) -> _Judged:
        hits = list(self._hits(page))
        length = page.length()
        by_words = found = self._judge.judge(hits, length)
        if self._texts:
            found = with_certainty(found, self._lexicon, page, self._texts, self._strictness)
            if length > LONG_PAGE and not found.category:
                found = self._by_passage(found, page, hits, self._texts)
        if self._model and is_grey(found, self._lexicon):
            found = with_opinion(found, self._lexicon, self._model.logit(page.visible()))
        classification = Classification(
            found.category,
            found.score,
            found.limit,
            found.scores,
            found.evidence,
            page.title,
            charset,
            page.digest(),
            certainty=found.certainty,
            doubt=found.doubt,
        )
        return _Judged(page, classification, by_words.sums)

    def _by_passage(self, found: Judgement, page: PageText, hits: list[ZoneHits], texts: TextModel) -> Judgement:
        """Returns the judgement of a page that is not blocked as a whole, after its densest passage was judged."""
        alone = self._passage(page, hits)
        if alone is None:
            return found
        passage, text, judged = alone
        return with_passage(found, with_certainty(judged, self._lexicon, text, texts), passage, self._strictness)

    def _passage(self, page: PageText, hits: list[ZoneHits]) -> tuple[Passage, PageText, Judgement] | None:
        """Returns the densest passage, as a page, and the verdict of the words on it; `None` if they have none."""
        passage = densest(hits, self._lexicon.categories, ideographic=page.is_ideographic())
        if passage is None:
            return None
        alone = PageText("", {"main": passage.text})
        judged = self._judge.judge(self._hits(alone), alone.length())
        return (passage, alone, judged) if judged.category else None

    def _hits(self, page: PageText) -> Iterator[ZoneHits]:
        for zone, normal in page.zones.items():
            in_normal = self._scanner.scan(normal)
            yield ZoneHits(zone, normal, True, in_normal)
            changed = changed_lines(normal)
            if changed:
                in_changed = self._scanner.scan(changed).items()
                yield ZoneHits(zone, changed, False, {meaning: at for meaning, at in in_changed if meaning not in in_normal})

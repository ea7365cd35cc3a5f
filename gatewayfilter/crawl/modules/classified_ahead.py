"""Classifications that parsers made ahead, in the place of the classifier."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gatewayfilter.interfaces import Classify, Page
from gatewayfilter.model import Classification


class ClassifiedAhead:
    """Answers with the classification that a parser made of a page, where it was made by the words in use. Implements `Classify`.

    What no parser saw, as the page without the words of its address, the classifier behind it judges.

    Args:
        classify: judges what is not known.
        words: returns the version of the words in use.
    """

    def __init__(self, classify: Classify, words: Callable[[], str]) -> None:
        self._classify = classify
        self._words = words
        self._ahead: dict[int, Classification] = {}

    @contextmanager
    def known(self, page: Page, classification: Classification | None, words: str) -> Iterator[None]:
        """Answers for this page, the very object, with a classification meanwhile."""
        fits = classification is not None and words == self._words()
        if fits and classification is not None:
            self._ahead[id(page)] = classification
        try:
            yield
        finally:
            self._ahead.pop(id(page), None)

    def classify_page(self, page: Page) -> Classification:
        """Returns the classification of a page."""
        return self._ahead.get(id(page)) or self._classify.classify_page(page)

    def classify_text(self, text: str) -> Classification:
        """Classifies plain text."""
        return self._classify.classify_text(text)

"""What becomes of a fetched page."""

from gatewayfilter.errors import ClassifyError
from gatewayfilter.interfaces import Classify, Page
from gatewayfilter.learn.growth import Growth
from gatewayfilter.learn.page_kind import is_readable
from gatewayfilter.model import Classification
from gatewayfilter.telemetry import Counters


class LearningSink:
    """Judges pages and grows the lists. Implements `interfaces.PageSink`.

    Counts `pages_skipped`, `pages_harmful` and `pages_harmless`.
    """

    def __init__(self, classify: Classify, growth: Growth, counters: Counters) -> None:
        self._classify = classify
        self._growth = growth
        self._counters = counters

    def page(self, page: Page) -> Classification | None:
        """Classifies the page and grows the lists. CPU-bound and writes to the database: call it off the event loop.

        Returns:
            The classification, or `None` for a page that is not judged: not 2xx, empty, neither HTML nor text, or one that the
            classifier cannot read.

        Raises:
            StoreError: the verdict could not be kept.
        """
        classification = self._judge(page)
        if classification is None:
            self._counters.add("pages_skipped")
            return None
        self._growth.learn(page, classification)
        self._counters.add("pages_harmful" if classification.harmful else "pages_harmless")
        return classification

    def _judge(self, page: Page) -> Classification | None:
        if not is_readable(page):
            return None
        try:
            return self._classify.classify_page(page)
        except ClassifyError:
            return None

"""The classifiers by the bundled words and models, which take a second to load: loaded once, and changed in what tests vary."""

import copy
from functools import cache
from pathlib import Path

from gatewayfilter.classify import PageClassifier, load_classifier
from gatewayfilter.classify.known_content import KnownContent
from gatewayfilter.settings import Strictness

BUNDLED = Path(__file__).parents[2] / "lists" / "words"


@cache
def bundled(strictness: Strictness = Strictness.STANDARD) -> PageClassifier:
    """Returns the classifier as `load_classifier` does."""
    if strictness is Strictness.STANDARD:
        return load_classifier([BUNDLED])
    found = another(bundled())
    found._strictness = strictness
    return found


def remembering(size: int) -> PageClassifier:
    """Returns one that remembers so many judgements."""
    found = another(bundled())
    found._known = KnownContent(size)
    return found


def another(classifier: PageClassifier) -> PageClassifier:
    """Returns an equal classifier that has judged nothing."""
    found = copy.copy(classifier)
    found._last, found._telling = None, ()
    return found

"""The fixtures of the classifier that these tests share."""

from tests.classify.conftest import in_use, lexicon

__all__ = [
    "in_use",
    "lexicon",
]

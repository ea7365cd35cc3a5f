"""The fixtures of the classifier that these tests share."""

from tests.classify.conftest import classifier, data_folder, each_reading, lexicon

__all__ = [
    "classifier",
    "data_folder",
    "each_reading",
    "lexicon",
]

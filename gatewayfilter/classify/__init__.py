"""Judges pages: charset, text by zones, sensitive words, score and evidence (docs/classification.md)."""

from gatewayfilter.classify.classifier import Explained, PageClassifier
from gatewayfilter.classify.following import FollowingClassifier, load_classifier, words_version
from gatewayfilter.classify.highlight import Segment, highlight, highlight_zone
from gatewayfilter.classify.lexicon import Category, Combination, Lexicon
from gatewayfilter.classify.lexicon_file import WordFile, format_word_file
from gatewayfilter.classify.linear import MODEL_FILE, LinearModel
from gatewayfilter.classify.own_words import OwnWords, export_category
from gatewayfilter.classify.phrase_list import PhraseList, parse_phrase_list

__all__ = [
    "MODEL_FILE",
    "Category",
    "Combination",
    "Explained",
    "FollowingClassifier",
    "Lexicon",
    "LinearModel",
    "OwnWords",
    "PageClassifier",
    "PhraseList",
    "Segment",
    "WordFile",
    "export_category",
    "format_word_file",
    "highlight",
    "highlight_zone",
    "load_classifier",
    "parse_phrase_list",
    "words_version",
]

"""Judges pages: charset, text by zones, sensitive words, score and evidence (docs/classification.md)."""

from gatewayfilter.classify.classifier import PageClassifier
from gatewayfilter.classify.following import FollowingClassifier, words_version
from gatewayfilter.classify.highlight import Segment, highlight
from gatewayfilter.classify.lexicon import Category, Combination, Lexicon
from gatewayfilter.classify.lexicon_file import WordFile, format_word_file
from gatewayfilter.classify.own_words import OwnWords, export_category
from gatewayfilter.classify.phrase_list import PhraseList, parse_phrase_list

__all__ = [
    "Category",
    "Combination",
    "FollowingClassifier",
    "Lexicon",
    "OwnWords",
    "PageClassifier",
    "PhraseList",
    "Segment",
    "WordFile",
    "export_category",
    "format_word_file",
    "highlight",
    "parse_phrase_list",
    "words_version",
]

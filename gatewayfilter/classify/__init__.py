"""Judges pages: charset, text by zones, sensitive words, score and evidence (docs/classification.md)."""

from gatewayfilter.classify.arithmetic import arithmetic_of
from gatewayfilter.classify.classifier import Explained, PageClassifier
from gatewayfilter.classify.extraction_book import RuleBook, RuleResult, extract
from gatewayfilter.classify.extraction_folder import RuleFolder, RuleVersion, read_rule_file
from gatewayfilter.classify.extraction_rules import ExtractionRule
from gatewayfilter.classify.following import FollowingClassifier, load_classifier, words_version
from gatewayfilter.classify.highlight import Segment, highlight, highlight_zone
from gatewayfilter.classify.ignored_words import IgnoredWords
from gatewayfilter.classify.lexicon import Category, Combination, Lexicon
from gatewayfilter.classify.lexicon_file import WordFile, format_word_file
from gatewayfilter.classify.linear import MODEL_FILE, LinearModel
from gatewayfilter.classify.own_words import OwnWords, export_category
from gatewayfilter.classify.page_parts import PageParts, parts_of
from gatewayfilter.classify.pdf_text import is_pdf, read_pdf_aside
from gatewayfilter.classify.phrase_list import PhraseList, parse_phrase_list

__all__ = [
    "MODEL_FILE",
    "Category",
    "Combination",
    "Explained",
    "ExtractionRule",
    "FollowingClassifier",
    "IgnoredWords",
    "Lexicon",
    "LinearModel",
    "OwnWords",
    "PageClassifier",
    "PageParts",
    "PhraseList",
    "RuleBook",
    "RuleFolder",
    "RuleResult",
    "RuleVersion",
    "Segment",
    "WordFile",
    "arithmetic_of",
    "export_category",
    "extract",
    "format_word_file",
    "highlight",
    "highlight_zone",
    "is_pdf",
    "load_classifier",
    "parse_phrase_list",
    "parts_of",
    "read_pdf_aside",
    "read_rule_file",
    "words_version",
]

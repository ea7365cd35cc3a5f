"""Judges pages: charset, text by zones, sensitive words, score and evidence (docs/classification.md)."""

from gatewayfilter.classify.classifier import Explained, PageClassifier
from gatewayfilter.classify.highlight import Segment, highlight, highlight_zone
from gatewayfilter.classify.ignored_words import IgnoredWords
from gatewayfilter.classify.lexicon.custom_words import CustomWords, export_category
from gatewayfilter.classify.lexicon.lexicon import Category, Combination, Lexicon
from gatewayfilter.classify.lexicon.phrase_list import PhraseList, parse_phrase_list
from gatewayfilter.classify.lexicon.word_file import WordFile, format_word_file
from gatewayfilter.classify.models.calibration import BLOCKED_FROM
from gatewayfilter.classify.models.linear_model import MODEL_FILE, LinearModel
from gatewayfilter.classify.reloading_classifier import ReloadingClassifier, load_classifier, words_version
from gatewayfilter.classify.score_breakdown import breakdown_of
from gatewayfilter.documents.page_parts import PageParts, parts_of
from gatewayfilter.documents.pdf_text import is_pdf, read_pdf_aside
from gatewayfilter.extraction.rule_book import RuleBook, RuleResult, extract
from gatewayfilter.extraction.rule_folder import RuleFolder, RuleVersion, read_rule_file
from gatewayfilter.extraction.rules import ExtractionRule

__all__ = [
    "BLOCKED_FROM",
    "MODEL_FILE",
    "Category",
    "Combination",
    "CustomWords",
    "Explained",
    "ExtractionRule",
    "IgnoredWords",
    "Lexicon",
    "LinearModel",
    "PageClassifier",
    "PageParts",
    "PhraseList",
    "ReloadingClassifier",
    "RuleBook",
    "RuleFolder",
    "RuleResult",
    "RuleVersion",
    "Segment",
    "WordFile",
    "breakdown_of",
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

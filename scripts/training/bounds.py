"""What is asked of the text model: how many harmless pages of each group may be blocked, and how many harmful ones be found."""

from collections.abc import Mapping

from scripts.training.inputs import LICENSED, WRITERS

FAR = -99.0
"""Log-odds of pages of which no word speaks."""
SMALLEST_GAP = 0.3
"""Log-odds between the knots of two strictnesses."""
GROUPS = {
    "html": ("html_aeb", "html_gne", "html_parsers_misc", "html_readability", "html_trafilatura"),
    "general": (
        "zh_dureader_web", "zh_wiki_cmrc", "zh_tnews_csldcp", "zh_thucnews_titles", "zh_medical_qa", "zh_it_docs", "en_agnews",
        "en_website_classif", "en_video_titles", "en_enron1", "en_spamassassin", "zh_hardneg_laws",
    ),
    "apps": ("zh_iflytek_apps",),
    "messages": ("en_smishing", "zh_sms_spam"),
    "near": (
        "zh_hardneg_security_news", "zh_hardneg_antifraud", "zh_hardneg_lifehacker", "en_hardneg_security_news",
        "en_hardneg_news", "en_hardneg_gov_health", "en_hardneg_docs", "en_hardneg_museum",
    ),
    "described": tuple(f"{writer}-fine" for writer in WRITERS),
    "daily": ("daily",),
    "ordinary": ("ordinary",),
    "mail": ("en_enron1",),
    "sites": ("en_website_classif",),
    "warnings": ("zh_hardneg_antifraud",),
}  # fmt: skip
"""Harmless pages by what they are like; some sets have a bound of their own besides."""
MARGINS = {"html": 0.5, "warnings": 0.5, "general": 0.3, "apps": 0.2, "near": 0.2}
"""Log-odds by which the pages of a group stay below the knots: others like them, which nobody has seen, lie around them."""
PASSAGES_OVER, PASSAGE_MARGIN = 0.5, 0.5
"""Log-odds by which passages that count lie above the knot of `relaxed`, and above each harmless one: long pages have many."""
DESCRIBED = "described"
FOUND: Mapping[str, tuple[float, float]] = {
    "en_gambling_pages": (0.985, 4.0),
    "zh_gambling_pages": (0.98, 4.0),
    "zh_adult_titles": (0.97, 4.0),
    "en_agora_drugs": (0.96, 1.0),
    "en_malware_lures": (0.85, 1.5),
    "en_phishkit_html": (0.3, 0.15),
    DESCRIBED: (0.98, 9.0),
}
"""Real harmful pages, and those of which weights are learned: the share that should be found, and what the set counts."""
_STRICT_SETS = {"daily": 0.08, "ordinary": 0.08, "mail": 0.05, "sites": 0.05, "warnings": 0.17}
_SETS = {"daily": 0.024, "ordinary": 0.018, "mail": 0.005, "sites": 0.0036, "warnings": 0.025}
_RELAXED_SETS = {"daily": 0.004, "ordinary": 0.004, "mail": 0.001, "sites": 0.001, "warnings": 0.001}
MOST_BLOCKED: tuple[Mapping[str, float], ...] = (
    {"html": 0.04, "general": 0.015, "apps": 0.04, "messages": 0.05, "near": 0.06, "described": 0.12, **_STRICT_SETS},
    {"html": 0.0, "general": 0.0016, "apps": 0.005, "messages": 0.009, "near": 0.01, "described": 0.05, **_SETS},
    {"html": 0.0, "general": 0.0004, "apps": 0.002, "messages": 0.002, "near": 0.003, "described": 0.006, **_RELAXED_SETS},
)
"""Share of the harmless pages of each group that a strictness may block, in the order of `BLOCKED_FROM`."""

SETTLED_GROUPS: Mapping[str, tuple[str, ...]] = {
    **{name: tuple(one for one in sets if one not in LICENSED) for name, sets in GROUPS.items() if name != DESCRIBED},
    "dialogues": ("zh_telecom_fraud",),
    "guns": ("en_weapons_html",),
    "traps": ("traps",),
}
"""Groups by which the knots of `standard` are settled: sets of which nothing was learned, and reporting halves; and the
sentences that no word may take for harmful, which the weights know."""
SETTLED_MOST: Mapping[str, float] = {
    "html": 0.0, "general": 0.0012, "apps": 0.0041, "messages": 0.004, "near": 0.01, "mail": 0.0025, "sites": 0.0,
    "warnings": 0.0275, "daily": 0.022, "ordinary": 0.018, "dialogues": 0.004, "guns": 0.0,
    "traps": 0.0,
}  # fmt: skip
"""Share of the pages of each group that may be blocked, with those that are as near as `SETTLED_MARGINS`."""
SETTLED_MARGINS: Mapping[str, float] = {
    "html": 1.0, "general": 0.6, "apps": 0.2, "messages": 0.0, "near": 0.2, "mail": 1.2, "sites": 0.3,
    "warnings": 0.5, "daily": 0.3, "ordinary": 0.3, "dialogues": 0.0, "guns": 0.8,
    "traps": 0.3,
}  # fmt: skip
"""As `MARGINS`, for the knots of `standard`: wide where little may be blocked, small where there is room."""
SETTLED_FOUND: Mapping[str, tuple[float, float]] = {
    "en_gambling_pages": (0.985, 4.0),
    "zh_gambling_pages": (0.99, 16.0),
    "zh_adult_titles": (0.96, 12.0),
    "en_agora_drugs": (0.96, 1.0),
    "en_malware_lures": (0.95, 10.0),
    "en_phishkit_html": (0.3, 0.15),
    "en_weapons_html": (0.85, 1.0),
    "fourth": (0.965, 12.0),
}
"""As `FOUND`, of sets of which nothing was learned. The kept writer's sites are left for the report."""
SPREAD = 0.6
SPREADS = {"en_malware_lures": 1.2, "zh_gambling_pages": 0.8}
"""Log-odds: how far other harmful pages lie from those of a set, the further the fewer these are; `SPREAD` for other sets."""

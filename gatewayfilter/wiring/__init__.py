"""Joins the rooms: the only place that knows which implementation of an interface is in use.

Each function imports the rooms it joins when it is called: a command pays for what it uses, and for nothing else.
"""

from gatewayfilter.wiring.filtering import (
    Progress,
    engine_for_lists,
    image_of,
    newest_engine,
    open_engine,
    publish_now,
    setup_pages,
    unpublished_engine,
)
from gatewayfilter.wiring.learning import (
    check_proxies,
    crawl_now,
    crawl_worker,
    extract_now,
    fetch_now,
    judge_now,
    learning_sink,
    page_archive,
    page_buffer,
    recognition,
    review_desk,
    run_crawl_worker,
)
from gatewayfilter.wiring.state import (
    categories,
    category_title,
    open_store,
    prepare_data_dir,
    snapshot_folder,
    subscriptions,
)
from gatewayfilter.wiring.words import (
    classifier,
    load_lexicon,
    own_words,
    rule_book,
    rules_folder,
    words_folder,
    words_folders,
    words_in_use,
)

__all__ = [
    "Progress",
    "categories",
    "category_title",
    "check_proxies",
    "classifier",
    "crawl_now",
    "crawl_worker",
    "engine_for_lists",
    "extract_now",
    "fetch_now",
    "image_of",
    "judge_now",
    "learning_sink",
    "load_lexicon",
    "newest_engine",
    "open_engine",
    "open_store",
    "own_words",
    "page_archive",
    "page_buffer",
    "prepare_data_dir",
    "publish_now",
    "recognition",
    "review_desk",
    "rule_book",
    "rules_folder",
    "run_crawl_worker",
    "setup_pages",
    "snapshot_folder",
    "subscriptions",
    "unpublished_engine",
    "words_folder",
    "words_folders",
    "words_in_use",
]

"""Dependency wiring: which implementation of an interface is in use.

Each function imports the packages that it joins when it is called: a command pays for what it uses, and for nothing else. The
assembly of a proxy worker stands apart in `gatewayfilter.wiring.proxy`, which imports mitmproxy at once.
"""

from gatewayfilter.wiring.classification import (
    classifier,
    custom_words,
    kept_lexicon,
    load_lexicon,
    rule_book,
    rules_folder,
    words_folder,
    words_folders,
    words_in_use,
)
from gatewayfilter.wiring.crawling import crawl_context, crawl_worker, page_archive, page_buffer, spool_reader
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
from gatewayfilter.wiring.learning import learning_sink, recognition, review_service, second_look
from gatewayfilter.wiring.storage import (
    categories,
    category_title,
    fleet_folder,
    on_read_only_disk,
    open_store,
    own_services,
    prepare_data_dir,
    publisher_snapshot,
    services,
    snapshot_folder,
    spool_folder,
    subscriptions,
    usable_services,
)

__all__ = [
    "Progress",
    "categories",
    "category_title",
    "classifier",
    "crawl_context",
    "crawl_worker",
    "custom_words",
    "engine_for_lists",
    "fleet_folder",
    "image_of",
    "kept_lexicon",
    "learning_sink",
    "load_lexicon",
    "newest_engine",
    "on_read_only_disk",
    "open_engine",
    "open_store",
    "own_services",
    "page_archive",
    "page_buffer",
    "prepare_data_dir",
    "publish_now",
    "publisher_snapshot",
    "recognition",
    "review_service",
    "rule_book",
    "rules_folder",
    "second_look",
    "services",
    "setup_pages",
    "snapshot_folder",
    "spool_folder",
    "spool_reader",
    "subscriptions",
    "unpublished_engine",
    "usable_services",
    "words_folder",
    "words_folders",
    "words_in_use",
]

"""Wiring of learning: list growth by judged pages, and the manual review of doubtful cases."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gatewayfilter.config import bundled_folder
from gatewayfilter.wiring.classification import reloading_classifier, rule_book
from gatewayfilter.wiring.shared import fingerprint_key, share_fingerprints
from gatewayfilter.wiring.storage import snapshot_folder

if TYPE_CHECKING:
    from gatewayfilter.classify import ReloadingClassifier
    from gatewayfilter.config import Settings
    from gatewayfilter.interfaces import Classify
    from gatewayfilter.learn import LearningPipeline, Recognition, ReviewService, Revisits, SecondLook
    from gatewayfilter.store import Store
    from gatewayfilter.telemetry import Counters


def learning_sink(
    settings: Settings,
    store: Store,
    counters: Counters,
    judge: ReloadingClassifier | None = None,
    classify: Classify | None = None,
) -> LearningPipeline:
    """Returns what judges pages, by `judge` where there is one already or `classify` before it, and grows the lists.

    Raises:
        ClassifyError: the words cannot be used.
        ConfigError: `learn.image_classifier` or a file of `learn.trusted_hosts` cannot be used.
    """
    from gatewayfilter.learn import LearningPipeline, ListGrowth, TaskIntake, UserContentHosts, load_image_classifier

    judge = judge or reloading_classifier(settings, rule_book(settings, store))
    user_content = UserContentHosts.load(bundled_folder() / "user-content.txt")
    list_growth = ListGrowth(
        store.lists,
        store.verdicts,
        settings.learn,
        user_content=user_content,
        together=store.learning,
        second_look=second_look(settings, store),
    )
    return LearningPipeline(
        classify or judge,
        list_growth,
        counters,
        settings.learn,
        recognition=recognition(settings, store, judge.words_version, counters),
        intake=TaskIntake(store.reviews, counters, settings.learn.max_open_reviews, together=store.deciding, explain=judge),
        read_text=judge,
        images=load_image_classifier(settings.learn.image_classifier),
    )


def second_look(settings: Settings, store: Store | None) -> SecondLook:
    """Returns the second look at verdicts; without a store, and with `learn.second_looks` off, by trusted hosts alone.

    Raises:
        ConfigError: a file of `learn.trusted_hosts` cannot be used.
    """
    from gatewayfilter.learn import HostListing, HostSecondLook, TrustedHosts, UserContentHosts, WordFeedback

    user_content = UserContentHosts.load(bundled_folder() / "user-content.txt")
    learn = settings.learn
    trusted = TrustedHosts(learn.trusted_hosts, public_service=learn.trusted_public_service, user_content=user_content)
    strictness = settings.classify.strictness
    if store is None or not learn.second_looks:
        return HostSecondLook(trusted, user_content, strictness)
    listing = HostListing(snapshot_folder(settings))
    return HostSecondLook(trusted, user_content, strictness, store.host_facts, listing, WordFeedback(store.decisions))


def revisits(settings: Settings, store: Store, judge: ReloadingClassifier) -> Revisits:
    """Returns the renewal of verdicts of pages that have not changed since they were judged by this classifier's words."""
    from gatewayfilter.learn import ListGrowth, Revisits

    list_growth = ListGrowth(store.lists, store.verdicts, settings.learn, together=store.learning)
    words = judge.words_version
    known = recognition(settings, store, words)
    return Revisits(store.validators, store.verdicts, list_growth, settings.learn, words, recognition=known, read_text=judge)


def recognition(
    settings: Settings, store: Store, words: Callable[[], str] = str, counters: Counters | None = None
) -> Recognition:
    """Returns the recognition of judged content; the hits that it counts are written before the store is closed.

    Args:
        settings: for the state folder with the key of the fingerprints.
        store: where fingerprints are kept.
        words: returns the version of the words in use.
        counters: where the use of a shared cache is counted.
    """
    from gatewayfilter.learn import ContentIds, Recognition, load_key

    share_fingerprints(settings, store, counters)
    known = Recognition(store.fingerprints, ContentIds(load_key(fingerprint_key(settings))), words)
    store.before_close(known.flush)
    return known


def review_service(settings: Settings, store: Store) -> ReviewService:
    """Returns the service that decides review tasks."""
    from gatewayfilter.learn import ReviewService

    known = recognition(settings, store)
    return ReviewService(store.reviews, store.lists, store.verdicts, known, settings.learn, together=store.deciding)

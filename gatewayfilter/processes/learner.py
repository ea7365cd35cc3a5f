"""The learner process: crawls unknown pages, grows the lists, keeps the snapshot and the subscriptions up to date."""

import asyncio
import logging
import math
import multiprocessing
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from gatewayfilter.addresses.neighbours import read_neighbours
from gatewayfilter.config import NotifyEvent, Settings
from gatewayfilter.errors import EXHAUSTED, GatewayFilterError, StartupError
from gatewayfilter.learn import forget_surplus, recheck_offers, rejudge_offers
from gatewayfilter.learn.own_model import OwnModel, decided_counts, retrain
from gatewayfilter.private_files import private
from gatewayfilter.processes.crawler import run_crawl_worker
from gatewayfilter.processes.low_priority import low_priority
from gatewayfilter.processes.published_snapshot import PublishedSnapshot
from gatewayfilter.processes.supervision.child_setup import begin_child, ending_with_a_sentence
from gatewayfilter.sources import UpdateStatus
from gatewayfilter.store import Store
from gatewayfilter.telemetry import Counters, StatusFile
from gatewayfilter.termination import calls_on_sigterm
from gatewayfilter.wiring import (
    on_read_only_disk,
    open_store,
    publish_now,
    publisher_snapshot,
    snapshot_folder,
    spool_reader,
    subscriptions,
    words_folder,
    words_in_use,
)
from gatewayfilter.wiring.notification import notifier, report_devices, report_sources

_log = logging.getLogger(__name__)

TICK_S = 1.0
RECHECK_EVERY_S = 60.0
RECHECK_BATCHES = 20
"""Of a thousand entries each, at a time: more than can be learned meanwhile."""
DEVICES_EVERY_S = 60.0
"""The neighbour table forgets devices after some minutes."""
PURGE_EVERY_S = 3600.0
SHRINK_EVERY_S = 2.0
"""Between two looks at the size of the files. The workers bound the log before each batch; here also without requests."""
FOLLOW_LOG_EVERY_S = 1.0
FOLLOW_LOG_SHARE = 0.5
"""The part of the time for which counting and indexing a large log may keep the writers of SQLite waiting."""
FLUSH_EVERY_S = 60.0
"""What is lost of the hits of known content, at most, when this process is killed."""
REJUDGE_MOST = 10_000
"""Blocked pages that are judged again at once after a change of the words."""
SOURCES_EVERY_S = 300.0
SPOOL_AGAIN_S = 5.0
"""Before pages that passed are read again after a failure; else the reader waits for them."""
RETRAIN_EVERY_S = 3600.0
DEVICES_EVERY_S = 60.0
REPUBLISH_AFTER_S = 30.0
REPUBLISH_AFTER_MOST_S = 3600.0
"""The pause before a snapshot that cannot be used is rebuilt once more: doubled each time.

It is reset once a snapshot was good for `GOOD_AFTER_S`: where a process can use none, for lack of memory or of descriptors, each
one that is published seems good for a moment.
"""
GOOD_AFTER_S = 90.0
SOON_GOOD_AFTER_S = 10.0
"""The same for `SOON_GOOD` snapshots in `SOON_WITHIN_S`: a disk may damage one after the other."""
SOON_GOOD, SOON_WITHIN_S = 6, 600.0
RETRY_AFTER_MOST_S = 120.0
"""The longest pause after a try to publish that failed, as on a full disk. The first is `REPUBLISH_AFTER_S`, each the double."""


def run_learner(settings: Settings) -> None:
    """Runs the learner until SIGTERM. The entry of its process; exits with 2 when it cannot start."""
    begin_child(settings)
    with ending_with_a_sentence():
        asyncio.run(_Learner(settings).run())


class _Learner:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._counters = Counters()
        self._status = StatusFile(settings.data_dir / "run", "learner")
        self._stop = asyncio.Event()
        if on_read_only_disk(settings):
            raise StartupError(f"the state folder {settings.data_dir} is read-only: nothing can be learned or published")
        self._store: Store = open_store(settings, counters=self._counters)
        self._notifier = notifier(settings, self._store, self._counters)
        self._jobs = _Jobs(settings)
        self._training = _Jobs(settings)  # of its own: nothing waits to be published meanwhile
        self._published = PublishedSnapshot(settings)
        self._tried_at = time.monotonic()
        self._outdated = self._published.is_of_another_database(self._store) or self._published.created_at < _newest_list(
            settings
        )
        self._republish_at = 0.0
        self._republished_at = math.inf
        self._soon_good: list[float] = []
        self._republish_after_s = REPUBLISH_AFTER_S
        self._has_failed = False
        self._retry_at = 0.0
        self._retry_after_s = REPUBLISH_AFTER_S

    async def run(self) -> None:
        with calls_on_sigterm(self._stop.set):
            await self._run()

    async def _run(self) -> None:
        upkeep = [
            self._every(TICK_S, self._tell),
            self._every(TICK_S, self._publish_when_due),
            self._every(TICK_S, self._republish),
            self._every(RECHECK_EVERY_S, self._recheck),
            self._every(RECHECK_EVERY_S, self._rejudge),
            self._every(FLUSH_EVERY_S, self._flush),
            self._every(PURGE_EVERY_S, self._purge_log),
            self._every(DEVICES_EVERY_S, self._watch_devices),
            self._every(SHRINK_EVERY_S, self._shrink_log),
            self._every(FOLLOW_LOG_EVERY_S, self._count_log),
            self._every(FOLLOW_LOG_EVERY_S, self._index_log),
            self._every(PURGE_EVERY_S, self._sweep_fingerprints),
            self._every(SOURCES_EVERY_S, self._update_sources),
            self._every(PURGE_EVERY_S, self._report_sources),
            self._every(DEVICES_EVERY_S, self._report_devices),
            self._every(RETRAIN_EVERY_S, self._retrain),
        ]
        self._notifier.start()
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(work) for work in upkeep]
                if self._settings.learn.enabled and self._settings.learn.passive:
                    tasks.append(group.create_task(self._every(SPOOL_AGAIN_S, self._read_spool)))
                if self._settings.learn.enabled and self._settings.crawl.workers:
                    await run_crawl_worker(self._settings, self._store, self._counters, 0, self._stop)
                else:
                    await self._stop.wait()
                for task in tasks:  # a publish under way is given up: the next start makes it good
                    task.cancel()
        finally:
            await asyncio.to_thread(self._notifier.stop)
            self._store.close()
            self._status.remove()

    async def _read_spool(self) -> None:
        reader = await asyncio.to_thread(spool_reader, self._settings, self._store, self._counters)
        await reader.run(self._stop)

    async def _every(self, interval_s: float, work: Callable[[], Awaitable[None]]) -> None:
        while not self._stop.is_set():
            try:
                await work()
            except (GatewayFilterError, *EXHAUSTED) as error:
                _log.warning("%s; trying again in %.0f s", str(error) or type(error).__name__, interval_s)
            try:
                await asyncio.wait_for(self._stop.wait(), interval_s)
            except TimeoutError:
                continue

    async def _tell(self) -> None:
        self._status.write(
            state="learning" if self._settings.learn.enabled else "keeping up",
            feed_seq=await asyncio.to_thread(self._store.feed.last_seq),
            published_seq=self._published.feed_seq,
            counters=self._counters.as_dict(),
        )

    async def _publish_when_due(self) -> None:
        if not self._outdated and await asyncio.to_thread(self._published.is_of_another_database, self._store):
            _log.warning("the database is not the one that the snapshot was made from; everything is published again")
            self._outdated = True
        waiting = await asyncio.to_thread(self._store.feed.last_seq) - self._published.feed_seq
        age_s = time.monotonic() - self._tried_at
        learn = self._settings.learn
        is_due = self._outdated or waiting >= learn.publish_after or (waiting and age_s >= learn.publish_interval_s)
        if is_due and time.monotonic() >= self._retry_at:
            await self._work_off(_publish_job)
            self._outdated = self._has_failed
            self._retry_at = time.monotonic() + self._retry_after_s if self._has_failed else 0.0

    async def _republish(self) -> None:
        """Rebuilds everything where a process could not use the current snapshot: a damaged disk, or a bug."""
        if not await asyncio.to_thread(snapshot_folder(self._settings).is_refused):
            self._end_pause(time.monotonic())
        elif time.monotonic() >= self._republish_at:
            _log.warning("the snapshot in use cannot be read; everything is published again")
            begun = time.monotonic()
            await self._work_off(_republish_job)
            if self._has_failed:
                self._republish_at = begun + self._retry_after_s
            else:
                self._republished_at = time.monotonic()
                self._republish_at = begun + self._republish_after_s
                self._republish_after_s = min(2 * self._republish_after_s, REPUBLISH_AFTER_MOST_S)

    def _end_pause(self, now: float) -> None:
        """Ends the pauses between snapshots that are made anew where the last one was good for long enough."""
        if self._republish_after_s == REPUBLISH_AFTER_S and now >= self._republish_at:
            return
        self._soon_good = [at for at in self._soon_good if at > now - SOON_WITHIN_S]
        is_soon = now >= self._republished_at + SOON_GOOD_AFTER_S and len(self._soon_good) < SOON_GOOD
        if is_soon or now >= max(self._republish_at, self._republished_at + GOOD_AFTER_S):
            self._soon_good += [now] if is_soon else []
            self._republish_at, self._republish_after_s = 0.0, REPUBLISH_AFTER_S

    async def _work_off(self, job: Callable[[Settings], None]) -> None:
        """Runs a job that may publish, and records the resulting snapshot, or its failure."""
        self._tried_at = time.monotonic()
        had_failed, self._has_failed = self._has_failed, not await self._jobs.run(job)
        self._retry_after_s = min(2 * self._retry_after_s, RETRY_AFTER_MOST_S) if had_failed else REPUBLISH_AFTER_S
        if not self._has_failed:
            before = self._published.created_at
            await asyncio.to_thread(self._published.refresh)
            if self._published.created_at != before:
                self._counters.add("publishes")

    async def _recheck(self) -> None:
        def work() -> int:
            now, lists = time.time(), self._store.lists
            count = 0
            for _ in range(RECHECK_BATCHES):
                count += self._store.frontier.add(recheck_offers(lists, now), now)
                if not (forget_surplus(lists) or lists.expired_learned(now, 1)):
                    break
            return count

        if count := await asyncio.to_thread(work):
            _log.info("%d learned blocks expired and are checked again", count)

    async def _rejudge(self) -> None:
        """Has blocked pages judged again after a change of the words; the version of the last words is kept in a file."""

        def work() -> int:
            mark = self._settings.data_dir / "words.version"
            words = words_in_use(self._settings)
            known = mark.read_text(encoding="ascii") if mark.exists() else words
            count = 0
            if known != words:
                count = self._store.frontier.add(rejudge_offers(self._store.lists, REJUDGE_MOST), time.time())
            if known != words or not mark.exists():
                with open(mark, "w", encoding="ascii", opener=private) as file:
                    file.write(words)
            return count

        if count := await asyncio.to_thread(work):
            _log.info("the words or the judge have changed: %d blocked pages are judged again", count)

    async def _flush(self) -> None:
        await asyncio.to_thread(self._store.flush)

    async def _purge_log(self) -> None:
        before = time.time() - self._settings.log.retention_days * 86_400
        await asyncio.to_thread(self._store.log.purge, before)

    async def _shrink_log(self) -> None:
        def work() -> None:
            self._store.log.shrink(self._settings.log.retention_mb * 1_000_000)
            self._store.tidy()

        await asyncio.to_thread(work)

    async def _watch_devices(self) -> None:
        def work() -> None:
            try:
                neighbours = read_neighbours()
            except OSError:  # a system without rtnetlink
                return
            self._store.devices.seen(neighbours, time.time())

        await asyncio.to_thread(work)

    async def _count_log(self) -> None:
        await self._follow_log(self._store.log_counter.step)

    async def _index_log(self) -> None:
        await self._follow_log(self._store.log_indexer.step)

    async def _follow_log(self, step: Callable[[], int]) -> None:
        """Works off what was logged since the last time: short transactions with pauses between them."""
        while not self._stop.is_set():
            begun = time.monotonic()
            if not await asyncio.to_thread(step):
                return
            await asyncio.sleep((time.monotonic() - begun) * (1 - FOLLOW_LOG_SHARE) / FOLLOW_LOG_SHARE)

    async def _sweep_fingerprints(self) -> None:
        await asyncio.to_thread(self._store.fingerprints.sweep, time.time())

    async def _update_sources(self) -> None:
        if publisher_snapshot(self._settings) is not None:
            return  # the lists of a fleet's publisher are in force
        if await asyncio.to_thread(lambda: subscriptions(self._settings).due(time.time())):
            await self._work_off(_update_job)

    async def _report_sources(self) -> None:
        """Notifies the operator of lists that could not be updated for days."""
        await asyncio.to_thread(
            lambda: report_sources(subscriptions(self._settings).all(), self._store.notifications, time.time())
        )

    async def _report_devices(self) -> None:
        """Notifies the operator of new devices, where that is wanted."""

        def work() -> None:
            with suppress(OSError):  # no rtnetlink: there is nothing to tell
                report_devices(read_neighbours(), self._store.policies.read(), self._store.notifications, time.time())

        if NotifyEvent.DEVICE in self._settings.notify.events:
            await asyncio.to_thread(work)

    async def _retrain(self) -> None:
        """Trains the operator's own model again when enough was decided since."""

        def is_due() -> bool:
            return OwnModel(words_folder(self._settings)).is_due(decided_counts(self._store.reviews), time.time())

        if self._settings.learn.retrain and await asyncio.to_thread(is_due):
            await self._training.run(_retrain_job)


def _newest_list(settings: Settings) -> float:
    """Returns when the newest list in use was written (Unix seconds): a new version of the program brings its own."""
    return max((source.path.stat().st_mtime for source in subscriptions(settings).files()), default=0.0)


class _Jobs:
    """Heavy work in a process of its own, one at a time: its memory goes back to the system when it is done."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._context = multiprocessing.get_context("spawn")
        self._one = asyncio.Lock()

    async def run(self, job: Callable[[Settings], None]) -> bool:
        """Runs a job to its end. Returns whether it went well."""
        async with self._one:
            process = self._context.Process(target=job, args=(self._settings,), name=job.__name__)
            process.start()
            try:
                await asyncio.to_thread(process.join)
            finally:
                if process.is_alive():
                    process.terminate()
            return process.exitcode == 0


def _publish_job(settings: Settings) -> None:
    begin_child(settings)
    _run_job(lambda: publish_now(settings, open_store(settings)))


def _republish_job(settings: Settings) -> None:
    begin_child(settings)
    _run_job(lambda: publish_now(settings, open_store(settings), full=True))


def _update_job(settings: Settings) -> None:
    begin_child(settings)

    def update() -> None:
        results = subscriptions(settings).update()
        for result in results:
            if result.error:
                _log.warning("the source %s was not updated: %s", result.name, result.error)
        if any(result.status is UpdateStatus.UPDATED for result in results):
            publish_now(settings, open_store(settings))

    _run_job(update)


def _retrain_job(settings: Settings) -> None:
    begin_child(settings)

    def work() -> None:
        store = open_store(settings)
        try:
            model = retrain(OwnModel(words_folder(settings)), store.reviews)
        finally:
            store.close()
        if model is None:
            _log.info("the second opinion stays as it was: a new one is little better than chance, or of too few pages")
        else:
            _log.info("the second opinion was trained again on %d decided pages (auc %.3f)", model.examples, model.auc)

    _run_job(work)


def _run_job(work: Callable[[], object]) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        with low_priority():
            work()
    except GatewayFilterError as error:
        _log.error("%s", error)
        sys.exit(2)

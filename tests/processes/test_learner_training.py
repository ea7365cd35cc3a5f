"""The learner trains the operator's own model in a process of its own, where the settings want it."""

import asyncio
from contextlib import closing
from pathlib import Path

import pytest

from gatewayfilter.classify import LinearModel
from gatewayfilter.model import Classification, ReviewKind, ReviewState, ReviewStep, ReviewTask
from gatewayfilter.processes.learner import _Learner
from gatewayfilter.settings import LearnSettings, Settings
from gatewayfilter.wiring import open_store

pytestmark = pytest.mark.slow

OFFERS = ("free spins and a jackpot", "bet on slots now", "roulette bonus today", "poker and chips for cash")
CALM = ("beans need water", "the library opens at nine", "a walk along the river", "soup with leeks")


def decide(settings: Settings, of_each: int) -> None:
    with closing(open_store(settings)) as store:
        for number in range(2 * of_each):
            pool, state = (OFFERS, ReviewState.APPROVED) if number % 2 else (CALM, ReviewState.REJECTED)
            key = f"s{number}.example/"
            text = f"{pool[number % 4]} {pool[(number + 2) % 4]} {number}"
            found = Classification("gambling", 30.0, 20.0)
            task = ReviewTask(0, ReviewKind.PAGE, f"http://{key}", key, "gambling", found, True, 1.0, text=text)
            task_id = store.reviews.add(task)
            decided = ReviewTask(
                task_id, ReviewKind.PAGE, task.url, key, "gambling", found, True, 1.0, state, decided_at=2.0, decided_by="ada"
            )
            store.reviews.decide(decided, ReviewStep(0, task_id, 2.0, "ada", "decision", detail={}))


@pytest.mark.parametrize(("of_each", "wanted", "trained"), [(22, True, True), (22, False, False), (19, True, False)])
def test_a_model_is_trained_when_enough_was_decided(tmp_path: Path, of_each: int, *, wanted: bool, trained: bool) -> None:
    settings = Settings(data_dir=tmp_path, learn=LearnSettings(retrain=wanted))
    decide(settings, of_each)

    async def run() -> None:
        learner = _Learner(settings)
        try:
            await learner._retrain()
        finally:
            learner._store.close()

    asyncio.run(run())
    model = LinearModel.load(tmp_path / "words" / "model.npz")
    assert (model is not None) == trained
    assert model is None or model.examples == 2 * of_each

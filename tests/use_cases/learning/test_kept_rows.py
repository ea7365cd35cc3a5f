"""Pages of words and extraction rules that wait for no child process, while nothing has changed."""

import time
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.config import load
from gatewayfilter.use_cases.learning.extraction_work import ExtractionWork
from gatewayfilter.use_cases.learning.word_work import WordWork
from gatewayfilter.wiring import open_store, prepare_data_dir

RULE = 'urls = "^https://shop\\\\.example/"\n[fields]\ntitle = "h1"\n'


class Child:
    """Counts what it is asked for."""

    def __init__(self) -> None:
        self.jobs: list[str] = []

    def run(self, job: str, *_: Any, **__: Any) -> Any:
        self.jobs.append(job.partition(":")[2])
        return [{"name": "shop", "host": "shop.example"}]


@pytest.fixture
def works(tmp_path: Path) -> Any:
    settings = load(options={"data_dir": tmp_path / "state"}).settings
    prepare_data_dir(settings)
    store, child = open_store(settings), Child()
    yield child, ExtractionWork(child, child, settings, store, time.time), WordWork(child, settings, store, time.time), settings
    store.close()


def test_no_rules_need_no_child_and_rules_need_one_once(works: Any) -> None:
    child, extraction, _, settings = works
    assert extraction.rules() == []
    assert child.jobs == []
    folder: Path = settings.data_dir / "rules"
    folder.mkdir(exist_ok=True)
    (folder / "shop.toml").write_text(RULE)
    assert [extraction.rules()[0]["name"] for _ in range(2)] == ["shop", "shop"]
    assert child.jobs == ["list_rules"]
    (folder / "shop.toml").write_text(RULE + "\n")
    extraction.rules()
    assert child.jobs == ["list_rules", "list_rules"]


def test_words_are_counted_again_when_own_ones_change(works: Any) -> None:
    child, _, words, settings = works
    words.categories()
    words.categories()
    assert child.jobs == ["categories"]
    folder: Path = settings.data_dir / "words"
    folder.mkdir(exist_ok=True)
    (folder / "own.toml").write_text("")
    words.categories()
    assert child.jobs == ["categories", "categories"]

from pathlib import Path

import pytest

from gatewayfilter.config import CrawlSettings, Settings
from gatewayfilter.telemetry import Counters
from gatewayfilter.wiring import crawl_context, open_store


@pytest.mark.slow
@pytest.mark.parametrize(("dedup", "kind"), [("bloom", "SeenFilter"), ("tree", "DigestTree")])
def test_the_setting_chooses_the_set(tmp_path: Path, dedup: str, kind: str) -> None:
    settings = Settings(data_dir=tmp_path / "state", crawl=CrawlSettings.model_validate({"dedup": dedup}))
    store = open_store(settings)
    try:
        context = crawl_context(settings, store, Counters())
        assert type(context.seen).__name__ == kind
    finally:
        store.close()

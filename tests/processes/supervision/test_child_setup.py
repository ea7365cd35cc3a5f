"""How child processes end."""

import asyncio
import logging

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.errors import ConfigError, StoreError
from gatewayfilter.processes import crawler
from gatewayfilter.processes.supervision.child_setup import ending_with_a_sentence


@pytest.mark.parametrize(
    "error",
    [
        ConfigError("why"),
        ExceptionGroup("tasks", [ConfigError("why")]),
        ExceptionGroup("tasks", [ExceptionGroup("more", [StoreError("why")])]),
    ],
)
def test_errors_of_our_own_are_one_sentence_each(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(SystemExit) as ended, ending_with_a_sentence():
        raise error
    assert ended.value.code == 2
    assert [record.getMessage() for record in caplog.records] == ["why"]


@pytest.mark.parametrize("error", [KeyError("bug"), ExceptionGroup("tasks", [ConfigError("why"), KeyError("bug")])])
def test_bugs_go_on_as_they_came(error: Exception) -> None:
    with pytest.raises(type(error)) as raised, ending_with_a_sentence():
        raise error
    assert raised.value is error


def test_a_crawler_that_cannot_begin_says_why(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    async def run(*_: object) -> None:
        async with asyncio.TaskGroup():
            raise ConfigError("learn.image_classifier cannot be used")

    monkeypatch.setattr(crawler, "_run", run)
    monkeypatch.setattr(crawler, "begin_child", lambda _: None)
    with caplog.at_level(logging.ERROR), pytest.raises(SystemExit, match="2"):
        crawler.run_crawler(1, Settings())
    assert caplog.messages == ["learn.image_classifier cannot be used"]

"""Which processes `run` starts for which settings, and what each is given. No process is started."""

import pickle
from pathlib import Path
from typing import Any, cast

import pytest

from gatewayfilter.config import Loaded, Settings
from gatewayfilter.processes import supervisor as supervisors
from gatewayfilter.processes.supervisor import LONGEST_WORKER_DELAY_S, supervise


def noted[T](log: list[Any], entry: object, result: T) -> T:
    """Takes note of something, and returns a result."""
    log.append(entry)
    return result


class Reserved:
    """Stands in for lock and address."""

    def __init__(self, found: object) -> None:
        self.found = found

    def __enter__(self) -> object:
        return self.found

    def __exit__(self, *_: object) -> None:
        pass


@pytest.mark.parametrize(
    ("chosen", "others", "later"),
    [
        ({}, ["learner"], ["web"]),
        ({"web": {"listen": ""}}, ["learner"], []),
        ({"crawl": {"workers": 3}}, ["learner", "crawler-1", "crawler-2"], ["web"]),
        ({"crawl": {"workers": 3}, "learn": {"enabled": False}}, ["learner"], ["web"]),
        ({"metrics": {"listen": "127.0.0.1:9190"}}, ["learner", "metrics"], ["web"]),
        ({"metrics": {"otlp": "http://127.0.0.1:4318"}}, ["learner", "metrics"], ["web"]),
        ({"fleet": {"listen": "127.0.0.1:8090"}}, ["learner", "fleet"], ["web"]),
        ({"sync": {"url": "redis://127.0.0.1:6379"}}, ["learner", "sync"], ["web"]),
        ({"kafka": {"brokers": "127.0.0.1:9092", "decisions": "judged"}}, ["learner", "decisions"], ["web"]),
        ({"helper": {"socket": "/run/helper.sock"}}, ["learner", "integration"], ["web"]),
        ({"icap": {"listen": "127.0.0.1:1344"}}, ["learner", "integration"], ["web"]),
        ({"decide": {"listen": "127.0.0.1:8099"}}, ["learner", "integration"], ["web"]),
        ({"rpz": {"listen": "127.0.0.1:5353"}}, ["learner", "integration"], ["web"]),
        ({"rpz": {"file": "/run/zone.rpz"}}, ["learner", "integration"], ["web"]),
    ],
)
def test_which_processes_run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    chosen: dict[str, Any],
    others: list[str],
    later: list[str],
) -> None:
    settings = Settings.model_validate({"data_dir": tmp_path, "proxy": {"workers": 2}, **chosen})
    bound = settings.model_copy(update={"proxy": settings.proxy.model_copy(update={"listen": "127.0.0.1:1"})})
    done = list[object]()
    for name in ("set_up_logging", "prepare_data_dir", "ensure_ca", "prepare_lists"):
        monkeypatch.setattr(supervisors, name, lambda *asked, name=name: done.append((name, *asked)))
    monkeypatch.setattr(supervisors, "RunLock", lambda folder: noted(done, ("lock", folder), Reserved(None)))
    monkeypatch.setattr(supervisors, "reserve_address", lambda _: Reserved(bound))
    monkeypatch.setattr(supervisors, "on_read_only_disk", lambda _: "fleet" in chosen)
    for name in ("WatchedForkServer", "KeptCa"):
        monkeypatch.setattr(supervisors, name, lambda _, name=name: name)
    given = list[Any]()

    class Supervising:
        def __init__(self, *arguments: object) -> None:
            given.extend(arguments)

        def run(self) -> int:
            return 7

    monkeypatch.setattr(supervisors, "_Supervisor", Supervising)
    assert supervise(Loaded(settings, {}), cast("Any", "context"), print) == 7
    assert ("read-only: filtering without learning" in caplog.text) is ("fleet" in chosen)
    assert done == [
        ("set_up_logging", settings.log.level, settings.log.format),
        ("prepare_data_dir", settings),
        ("lock", tmp_path),
        ("ensure_ca", tmp_path / "ca"),
        ("prepare_lists", bound),
    ]
    got, proxies, running, dashboards, *_ = given
    assert got is bound
    assert [(child.name, child._args, child._beats, child._longest_delay_s) for child in proxies] == [
        (f"proxy-{number}", (number, bound), True, LONGEST_WORKER_DELAY_S) for number in range(2)
    ]
    assert [child.name for child in running] == others
    assert [child._args for child in running if child.name.startswith("crawler")] == [
        (number, bound) for number in range(1, len(others)) if others[number].startswith("crawler")
    ]
    assert all(child._args == (bound,) for child in running if not child.name.startswith("crawler"))
    assert [child.name for child in dashboards] == later
    assert all(pickle.loads(child._args[0])[1].settings.proxy.listen == "127.0.0.1:1" for child in dashboards)

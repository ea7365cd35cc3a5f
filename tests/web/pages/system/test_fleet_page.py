"""The page of a fleet: alone, as a publisher with its followers, as a follower with its exceptions; in both languages."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gatewayfilter.fleet.follower_state import Fault, FollowerState
from gatewayfilter.fleet.health import Report
from gatewayfilter.use_cases import fleet_status as use_case
from gatewayfilter.use_cases.fleet_status import FleetStatus, FollowerRow
from tests.web.learning_fakes import HOSTILE
from tests.web.web_fakes import VIEWER, Dashboard, dashboard


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    folder: Path = tmp_path_factory.mktemp("fleet") / "state"
    with dashboard(folder) as opened:
        opened.who.identity = VIEWER
        yield opened


def rows(now: float) -> tuple[FollowerRow, ...]:
    def report(fault: Fault) -> Report:
        return Report("1.2.3", 41, 3600, 900, 2, 0, 1, fault, 4)

    return (
        FollowerRow("north", 1.0, now - 30, report(Fault.OK)),
        FollowerRow("south", 1.0, now - 40, report(Fault.DISK)),
        FollowerRow("west", 1.0, now - 9_000, report(Fault.OK)),
        FollowerRow("new", 1.0, 0.0, None),
    )


def test_what_is_shown(web: Dashboard, monkeypatch: pytest.MonkeyPatch) -> None:
    now = web.services.clock()
    state = FollowerState(
        in_force=41, made_at=now - 60, contact_at=now, fault=Fault.SIGNATURE, sentence=HOSTILE, failures=7,
        exceptions=(f"policy:{HOSTILE}", "group:kids", *(f"quota:q{n}" for n in range(300))),
    )  # fmt: skip
    follower = FleetStatus(False, 0, 0.0, (), f"https://x.example/{HOSTILE}", state)
    cases = (
        (FleetStatus(False, 0, 0.0, (), "", FollowerState()), ("This filter stands alone",), ("此过滤器独立运行",)),
        (
            FleetStatus(True, 42, now - 5, rows(now), "", FollowerState()),
            ("Version 42 is published.", "north", "no room on the disk", "1 follower has not reported", "no report yet", "1.2.3"),
            ("已发布版本 42", "磁盘空间不足", "1 个跟随端超过 10 分钟未报告", "尚无报告"),
        ),
        (follower, ("signature not valid", "and 102 more", "kids", "Quota"), ("签名无效", "另有 102 个", "限额")),
        (FleetStatus(False, 0, 0.0, (), "https://p.example", FollowerState()), ("bundled lists are in force",), ("自带的名单",)),
        (FleetStatus(True, 0, 0.0, (), "", FollowerState()), ("None is admitted yet.",), ("尚未登记任何跟随端",)),
    )
    for status, english, chinese in cases:
        monkeypatch.setattr(use_case, "fleet_status", lambda _, status=status: status)
        for language, expected in (("en", english), ("zh-CN", chinese)):
            answer = web.client.get("/fleet", headers={"accept-language": language})
            assert answer.status_code == 200
            assert [text for text in expected if text not in answer.text] == []
            assert "<img" not in answer.text

"""Times on pages are those of `filter.timezone`, not of the machine."""

from pathlib import Path

import pytest

from gatewayfilter.model import LogRecord
from tests.web.web_fakes import dashboard

AT = 1_767_225_599.0
"""2025-12-31 23:59:59 UTC: the next year in Auckland, the same day in Honolulu."""


@pytest.mark.parametrize(
    ("zone", "clock", "day"), [("Pacific/Auckland", "12:59:59", "2026-01-01"), ("Pacific/Honolulu", "13:59:59", "2025-12-31")]
)
def test_pages_use_the_zone_of_the_settings(tmp_path: Path, zone: str, clock: str, day: str) -> None:
    with dashboard(tmp_path, filter__timezone=zone) as web:
        web.services.store.log.write([LogRecord(AT, "192.0.2.1", "GET", "http://a.example/", "document", "allow", "unknown")])
        web.services.clock = lambda: AT + 10
        text = web.client.get("/log?view=all").text
        assert zone in text
        assert clock in text
        sent = {"rules": "ads.example", "action": "block", "lasts": "day", "until": day}
        assert web.client.post("/rules", data=sent).status_code in {200, 303}
        rule = web.services.store.lists.rule(1)
        assert rule is not None
        assert rule.expires_at is not None
        hour, minute, second = map(int, clock.split(":"))
        midnight = AT - hour * 3600 - minute * 60 - second
        assert rule.expires_at == midnight + 24 * 3600 - 1
        assert f'value="{day}"' in web.client.get("/rules/1").text

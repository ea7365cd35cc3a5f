"""Rows of the log: who, what, and the addresses that they lead to."""

from typing import cast

import pytest

from gatewayfilter.model import Client, LogRecord, PolicySet, parse_matcher
from gatewayfilter.use_cases.traffic.log_clients import LogClients
from gatewayfilter.use_cases.traffic.log_groups import LogGroup
from gatewayfilter.web.pages.traffic.log_rows import LogRow, LogRows, log_url

RECORD = LogRecord(
    5.0, "10.0.0.7", "POST", "https://www.a.example/x?y", "script", "block", "adblock", "list", "||a^", "ads", 5,
)  # fmt: skip


class Names:
    """The names of two clients."""

    def name(self, address: str) -> str:
        return {"10.0.0.7": "tablet", "10.0.0.8": "car"}.get(address, "")


def rows() -> LogRows:
    clients = [Client("tablet", (parse_matcher("10.0.0.7"),), icon="tablet"), Client("car", (parse_matcher("10.0.0.8"),))]
    return LogRows(cast("LogClients", Names()), PolicySet(clients={one.name: one for one in clients}))


def row(url: str = RECORD.url, client: str = "10.0.0.7", action: str = "block") -> LogRow:
    return rows().row(3, RECORD._replace(url=url, client=client, action=action))


def test_a_row_has_all_of_its_decision() -> None:
    assert row() == LogRow(
        3, 5.0, "tablet", "10.0.0.7", "tablet", "www.a.example", "/x?y", RECORD.url, "POST", "block", "adblock", "list", "||a^",
        "ads", "client:tablet", 1, 1, "",
    )  # fmt: skip
    assert (row().why, row().device_log, row().site_log) == ("/log/3/why", "/log?client=tablet", "/log?site=a.example")
    assert row().subject == "www.a.example, tablet"
    allowed = row(action="allow")
    assert (allowed.blocked, allowed.decisions, allowed.more) == (0, 1, "")
    assert rows().rows([(1, RECORD), (2, RECORD)]) == [rows().row(1, RECORD), rows().row(2, RECORD)]


@pytest.mark.parametrize(
    ("client", "device", "icon", "whom"),
    [
        ("10.0.0.8", "car", "device", "client:car"),
        ("10.0.0.9", "10.0.0.9", "device", "device:10.0.0.9"),
        ("", "", "device", ""),
    ],
)
def test_who_asked(client: str, device: str, icon: str, whom: str) -> None:
    found = row(client=client)
    assert (found.device, found.address, found.icon, found.whom) == (device, client, icon, whom)


@pytest.mark.parametrize(
    ("url", "host", "rest", "site_log"),
    [
        ("a.example", "a.example", "", "/log?site=a.example"),
        ("http://a.example?x=/y", "a.example", "?x=/y", "/log?site=a.example"),
        (f"http://a.example/{'x' * 600}", "a.example", f"/{'x' * 499}", "/log?site=a.example"),
        ("http://localhost/", "localhost", "/", "/log?site=localhost"),
        ("", "", "", "/log"),
    ],
)
def test_what_was_asked_for(url: str, host: str, rest: str, site_log: str) -> None:
    found = row(url)
    assert (found.host, found.rest, found.site_log) == (host, rest, site_log)


def test_a_row_of_several_leads_to_all_of_them() -> None:
    group = LogGroup("10.0.0.7", "a.example", 60.0, 9, 3, 5, RECORD, 2, 1, 0)
    found = rows().group(group, {"reason": "adblock", "client": "x"}, "1970-01-01T00:01", "1970-01-01T00:02")
    assert (found.number, found.decisions, found.blocked, found.device, found.url) == (5, 2, 1, "tablet", RECORD.url)
    assert found.more == (
        "/log?reason=adblock&client=tablet&site=a.example&since=1970-01-01T00%3A01&until=1970-01-01T00%3A02&view=all"
    )
    for one in (
        LogGroup("10.0.0.7", "a.example", 60.0, 9, 3, 5, RECORD, 1, 0, 0),
        LogGroup("10.0.0.7", "", 60.0, 9, 3, 5, RECORD, 7, 0, 0),
    ):
        assert rows().group(one, {}, "a", "b").more == ""
    assert (log_url(), log_url(client="", q="a b"), log_url(q="")) == ("/log", "/log?q=a+b", "/log")

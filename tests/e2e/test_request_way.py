"""The whole way of a request: a child's tablet is blocked by a schedule, asks, a parent is notified and approves, the time ends.

Real processes, two workers; the devices are addresses of loopback.
"""

import http.client
import json
import re
import time
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

import pytest

from gatewayfilter.model import Client, Group, Schedule, ScheduleEffect, Window, parse_matcher
from gatewayfilter.store import Store
from gatewayfilter.use_cases.policies import PolicyEditor
from tests.e2e.e2e_gateway import ANSWER_S, Answer, GatewayProcess, Origin, until
from tests.notify.notify_servers import HttpReceiver, SmtpReceiver

pytestmark = pytest.mark.slow

TABLET, BROTHER, PARENT = "127.0.0.2", "127.0.0.3", "127.0.0.1"


def zone_at_bedtime() -> str:
    """A time zone in which it is past 21 o'clock, for an hour or two more at least."""
    ahead = (21 - datetime.now(UTC).hour) % 24
    return f"Etc/GMT-{ahead}" if ahead <= 14 else f"Etc/GMT+{24 - ahead}"


ZONE = zone_at_bedtime()


@pytest.fixture(scope="module")
def webhook() -> Iterator[HttpReceiver]:
    receiver = HttpReceiver()
    yield receiver
    receiver.close()


@pytest.fixture(scope="module")
def mail_server() -> Iterator[SmtpReceiver]:
    server = SmtpReceiver()
    yield server
    server.close()


@pytest.fixture(scope="module")
def filter_of_family(
    tmp_path_factory: pytest.TempPathFactory, webhook: HttpReceiver, mail_server: SmtpReceiver
) -> Iterator[GatewayProcess]:
    settings = {
        "proxy__workers": "2",
        "learn__enabled": "false",
        "notify__webhook_url": f"{webhook.url}/hook",
        "notify__webhook_key": "hook-key",
        "notify__digest_s": "1",
        "notify__smtp_host": "127.0.0.1",
        "notify__smtp_port": str(mail_server.port),
        "notify__smtp_security": "none",
        "notify__mail_to": "parent@example.com",
    }
    state: Path = tmp_path_factory.mktemp("family") / "state"
    state.mkdir(mode=0o700)
    prepare_family(state)
    with GatewayProcess(state, **settings) as running:
        yield running


def prepare_family(state: Path) -> None:
    """Two children with a bedtime at 21:00, in a time zone in which that was some minutes ago."""
    store = Store.open(f"sqlite:///{state / 'gatewayfilter.sqlite3'}")
    editor = PolicyEditor(store.policies)
    editor.add_policy("kids")
    editor.add_group(Group("kids", "kids"))
    for name, address in (("tablet", TABLET), ("brother", BROTHER)):
        editor.add_client(Client(name, (parse_matcher(address),), "kids"))
    editor.add_schedule(Schedule("bedtime", "kids", ScheduleEffect.BLOCK_ALL, (Window(21 * 60, 6 * 60),), ZONE), set())
    store.close()


def until_in_all(gateway: GatewayProcess, what: str, ask: Callable[[], bool], timeout_s: float) -> None:
    """Asks until there is an answer, which one worker gives, and until all have taken in what is in the lists now."""
    until(what, ask, timeout_s)
    with closing(Store.open(f"sqlite:///{gateway.state / 'gatewayfilter.sqlite3'}")) as store:
        newest = store.feed.last_seq()
    for name in ("proxy-0", "proxy-1"):  # which write down every second how far they are
        until(f"{what} in {name}", lambda name=name: gateway.status(name).get("feed_seq", 0) >= newest, timeout_s + 1.0)  # type: ignore[misc]


def blocked_page(gateway: GatewayProcess, device: str, url: str) -> Answer | None:
    """Returns the answer if it is a block page."""
    answer = visit(gateway, device, url)
    return answer if answer.status == 403 else None


def page_that_asks(gateway: GatewayProcess, device: str, url: str) -> Answer | None:
    """Returns the answer if it is a block page with a button to ask; rules and policies need not arrive at the same moment."""
    answer = blocked_page(gateway, device, url)
    return answer if answer is not None and "Ask to unblock" in answer.text else None


def visit(gateway: GatewayProcess, device: str, url: str, form: dict[str, str] | None = None) -> Answer:
    """Sends a request from an address of loopback through the filter; a forged X-Forwarded-For must not matter.

    Status 0 is that of a connection which the filter ended: as it does with what runs at the moment from which it is blocked.
    """
    host, _, port = gateway.address.rpartition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=ANSWER_S, source_address=(device, 0))
    headers = {
        "host": urlsplit(url).netloc,
        "x-forwarded-for": TABLET,
        "forwarded": f"for={TABLET}",
        "sec-fetch-dest": "document",
    }
    try:
        if form is None:
            connection.request("GET", url, headers=headers)
        else:
            headers["content-type"] = "application/x-www-form-urlencoded"
            connection.request("POST", url, urllib.parse.urlencode(form), headers)
        answer = connection.getresponse()
        return Answer(answer.status, {name.lower(): text for name, text in answer.getheaders()}, answer.read().decode())
    except (http.client.IncompleteRead, ConnectionError):
        return Answer(0, {}, "")
    finally:
        connection.close()


def test_the_walk(filter_of_family: GatewayProcess, http_site: Origin, webhook: HttpReceiver, mail_server: SmtpReceiver) -> None:
    gateway, url = filter_of_family, f"{http_site.base}/garden/11"
    until("schedule", lambda: blocked_page(gateway, TABLET, url))
    blocked = until("block page with a way to ask", lambda: page_that_asks(gateway, TABLET, url))
    assert blocked.reason == "schedule"
    assert visit(gateway, PARENT, url).status == 200
    today = datetime.now(ZoneInfo(ZONE)).replace(second=0, microsecond=0, tzinfo=None)
    for hour, minute, reason in ((20, 59, "unknown"), (21, 0, "schedule")):
        at = today.replace(hour=hour, minute=minute, tzinfo=ZoneInfo(ZONE)).isoformat()
        assert gateway.json("check", url, "--client", "tablet", "--at", at)["verdict"]["reason"] == reason

    action = blocked.text.partition('action="')[2].partition('"')[0]
    note = "vocabulary for tomorrow\r\nBcc: all@example.com"
    asked = visit(gateway, TABLET, f"{http_site.base}{action}", {"url": url, "comment": note})
    assert asked.status == 303
    page = asked.headers["location"]
    assert visit(gateway, TABLET, page).reason == "waiting"
    assert visit(gateway, BROTHER, page).reason == "ask-again"  # bound to the client

    mail = until("mail", lambda: next(iter(mail_server.mails), None))
    assert "vocabulary for tomorrow" in mail.text
    (told,) = until("webhook", lambda: webhook.received and webhook.received)
    event = json.loads(told.body)["events"][0]
    assert (event["client_name"], event["url"], event["reason"]) == ("tablet", url, "schedule")
    command = re.search(r"gatewayfilter (request approve (\d+) --for 1h)", json.loads(told.body)["text"])
    assert command is not None
    number = command[2]

    until("block page with the state", lambda: "waiting for an answer" in visit(gateway, TABLET, url).text)
    approved_at = time.time()
    done = gateway.cli(*command[1].split(), "--word", "good luck")  # as the message has it
    assert done.returncode == 0, done.stderr
    until_in_all(gateway, "visit", lambda: visit(gateway, TABLET, url).status == 200, 2.0)
    assert {visit(gateway, TABLET, url).status for _ in range(6)} == {200}  # in both workers
    assert {visit(gateway, BROTHER, url).status for _ in range(4)} == {403}
    until("word", lambda: "good luck" in visit(gateway, TABLET, page).text, 2.0)  # rules arrive on another way than answers
    assert visit(gateway, TABLET, page).reason in {"approved", "not-blocked"}  # of the other worker, as late as that
    (rule,) = gateway.json("list", "show")
    assert (rule["scope"], rule["group"]) == ("client:tablet", "requests")
    assert 3_590 < rule["expires_at"] - approved_at < 3_660
    assert rule["comment"] == f"request {number}: vocabulary for tomorrow Bcc: all@example.com"

    assert (
        gateway.cli("request", "approve", number, "--for", "4s", "--word", "good luck").returncode == 0
    )  # an hour is too long here
    until("end", lambda: {visit(gateway, TABLET, url).status for _ in range(4)} == {403}, 20.0)
    assert visit(gateway, TABLET, url).reason == "schedule"
    assert "the approval has ended" in visit(gateway, TABLET, url).text

    def told_by_log(client: str) -> list[tuple[str, str]]:
        """Actions and reasons of a client, the oldest first, each once until it changes."""
        lines = gateway.cli("log", "search", "/garden/11", "--client", client, "--limit", "1000", "--json").stdout.splitlines()
        records = sorted((json.loads(line) for line in lines), key=lambda one: one["at"])
        return [of for of, _ in groupby((one["action"], one["reason"]) for one in records if one["url"] == url)]

    blocked_first = [("block", "schedule"), ("allow", "manual-allow"), ("block", "schedule")]
    until("log", lambda: told_by_log("tablet") == blocked_first)
    assert told_by_log("brother") == [("block", "schedule")]
    (request,) = gateway.json("request", "list", "--all")
    assert (request["state"], request["word"], request["client_name"]) == ("approved", "good luck", "tablet")
    assert len(mail_server.mails) == 1


def test_links_in_all_workers(filter_of_family: GatewayProcess, http_site: Origin) -> None:
    gateway, url = filter_of_family, f"{http_site.base}/garden/12"
    until("schedule", lambda: visit(gateway, TABLET, url).status == 403)
    made = gateway.json("bypass", "add", url, "--client", "tablet", "--for", "10min", "--once")
    number, link = made["link"]["link_id"], made["address"]
    assert visit(gateway, BROTHER, link).reason == "link-other"
    assert visit(gateway, TABLET, f"{link[:-2]}xx").reason == "link-invalid"
    assert visit(gateway, TABLET, link).status == 303
    until("visit", lambda: visit(gateway, TABLET, url).status == 200, 3.0)
    assert visit(gateway, BROTHER, url).status == 403
    assert gateway.cli("bypass", "revoke", str(number)).returncode == 0
    until("revocation", lambda: visit(gateway, TABLET, url).status == 403, 3.0)
    until("refusal", lambda: {visit(gateway, TABLET, link).reason for _ in range(4)} == {"link-revoked"}, 3.0)
    once = gateway.json("bypass", "add", url, "--client", "tablet", "--once")["address"]
    visit(gateway, TABLET, once)
    (rule,) = until("rule", lambda: [found for found in gateway.json("list", "show") if "/garden/12" in found["pattern"]])
    until("visit", lambda: visit(gateway, TABLET, url).status == 200, 3.0)
    gateway.cli("list", "remove", str(rule["rule_id"]))  # as if the visit had ended
    until_in_all(gateway, "end", lambda: visit(gateway, TABLET, url).status == 403, 3.0)
    until("refusal", lambda: {visit(gateway, TABLET, once).reason for _ in range(4)} == {"link-used"}, 3.0)
    assert visit(gateway, TABLET, url).status == 403


def test_a_policy_may_take_no_requests(filter_of_family: GatewayProcess, http_site: Origin) -> None:
    gateway, url = filter_of_family, f"{http_site.base}/garden/13"
    assert "<form" in until("page", lambda: blocked_page(gateway, BROTHER, url)).text
    assert gateway.cli("policy", "set", "kids", "requests=off").returncode == 0
    until("no form", lambda: "<form" not in visit(gateway, BROTHER, url).text, 3.0)
    action = f"{http_site.base}/.well-known/gatewayfilter/unblock"
    assert visit(gateway, BROTHER, action, {"url": url}).reason == "requests-off"
    assert gateway.cli("policy", "set", "kids", "requests=").returncode == 0


def test_no_secret_is_shown(filter_of_family: GatewayProcess) -> None:
    shown = filter_of_family.cli("config", "show", "notify")
    assert "hook-key" not in shown.stdout
    assert "/hook" not in shown.stdout
    assert "hook-key" not in filter_of_family.log.read_text()

"""Services and quotas with real processes: two workers, two clients by their addresses, a restart."""

import time
from collections.abc import Iterator
from http.client import HTTPConnection, IncompleteRead
from pathlib import Path

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.model import Client, DailyMinutes, Group, Quota, QuotaKind, QuotaSum, parse_matcher
from gatewayfilter.use_cases.policies import PolicyEditor
from gatewayfilter.wiring import open_store
from tests.e2e.e2e_gateway import ANSWER_S, GatewayProcess, Origin, until

CHILD, ADULT = "127.0.0.2", "127.0.0.3"
TRIES = 24


class Family:
    """A filter with a child, and a service that is whatever listens on the port of the site."""

    def __init__(self, gateway: GatewayProcess, site: Origin) -> None:
        self.gateway = gateway
        self.site = site
        self.store = open_store(Settings(data_dir=gateway.state))
        self.editor = PolicyEditor(self.store.policies)

    def block(self, text: str) -> None:
        """Blocks the services of this text for the child."""
        self.editor.set_policy("kids", [("services", text)], known_categories=(), known_sources=(), known_services={"garden"})

    def reason(self, client: str) -> str:
        """The reason of a block over a connection of its own, `""` for the page; `"ended"` where the filter ended the connection.

        It does so with what runs at the moment from which it is blocked.
        """
        host, _, port = self.gateway.address.rpartition(":")
        connection = HTTPConnection(host, int(port), timeout=ANSWER_S, source_address=(client, 0))
        try:
            connection.request("GET", f"{self.site.base}/garden/1")
            response = connection.getresponse()
            response.read()
            return (response.headers.get("x-gatewayfilter") or "").partition("reason=")[2]
        except (IncompleteRead, ConnectionError):
            return "ended"
        finally:
            connection.close()

    def reasons(self, client: str) -> set[str]:
        """The reasons over many connections, which the kernel spreads over the workers."""
        return {self.reason(client) for _ in range(TRIES)}

    def decided(self) -> list[int]:
        """How many requests each worker has decided."""
        return [self.gateway.status(f"proxy-{index}").get("counters", {}).get("requests", 0) for index in range(2)]

    def await_counting(self) -> None:
        """Waits until each worker counts by the quotas of now: it begins when it has taken them in, before its next status."""
        newest, names = self.store.feed.last_seq(), ("proxy-0", "proxy-1")
        until("the quotas in every worker", lambda: all(self.gateway.status(name).get("feed_seq", 0) >= newest for name in names))
        known_at = {name: self.gateway.status(name)["at"] for name in names}
        until("another status", lambda: all(self.gateway.status(name)["at"] > known_at[name] for name in names))


def zone_at_noon() -> str:
    """A time zone in which no day ends for hours: quotas are of a day."""
    ahead = 12 - time.gmtime().tm_hour
    return f"Etc/GMT{-ahead:+d}"


@pytest.fixture
def family(state: Path, http_site: Origin, trusting: dict[str, str]) -> Iterator[Family]:
    gateway = GatewayProcess(state, **{**trusting, "proxy__workers": "2"})
    found = Family(gateway, http_site)
    found.editor.add_policy("kids")
    found.editor.add_group(Group("kids", "kids"))
    found.editor.add_client(Client("child", (parse_matcher(CHILD),), "kids"))
    text = f'[garden]\nname = "Garden"\ngroup = "games"\nports = [{http_site.server.server_port}]\n'
    (state / "services.toml").write_text(text, encoding="utf-8")
    with gateway:
        yield found
    found.store.close()


@pytest.mark.slow
@pytest.mark.timeout(300)  # on a busy machine
def test_a_service_is_blocked_for_one_client_in_every_worker(family: Family) -> None:
    assert family.reasons(CHILD) == family.reasons(ADULT) == {""}
    until("both workers decide", lambda: all(family.decided()), 10)
    family.block("garden")
    until("block", lambda: family.reason(CHILD) == "service", 1.0)
    until("block in every worker", lambda: family.reasons(CHILD) == {"service"}, 2.0)
    assert family.reasons(ADULT) == {""}

    # Another catalogue counts at once, too.
    own = family.gateway.state / "services.new"
    own.write_text('[garden]\nhosts = ["garden.example"]\n', encoding="utf-8")
    own.rename(own.with_suffix(".toml"))
    until("no block", lambda: family.reasons(CHILD) == {""}, 10)


@pytest.mark.slow
@pytest.mark.timeout(400)  # a minute of the clock, on a busy machine
def test_a_minute_runs_out_in_every_worker_and_after_a_restart(family: Family) -> None:
    family.editor.add_quota(Quota("play", "kids", QuotaKind.CATEGORY, "games", 1, zone_at_noon()), {"games"}, ())
    family.await_counting()
    while time.time() % 60 > 40:
        time.sleep(0.5)
    assert family.reasons(CHILD) == {""}
    ends_at = (time.time() // 60 + 1) * 60
    until("one minute", lambda: family.store.usage.sums(time.time()) == [QuotaSum("client:child", "play", 1)], 10)
    time.sleep(max(0.0, ends_at - time.time()))
    until("end of the minute in every worker", lambda: family.reasons(CHILD) == {"quota"}, 0.5)
    assert family.reasons(ADULT) == {""}
    family.gateway.stop()
    family.gateway.start()
    assert family.reasons(CHILD) == {"quota"}
    family.editor.set_quota("play", DailyMinutes(5, {}))
    until("more minutes", lambda: family.reasons(CHILD) == {""}, 10)

"""Inspection and the button of the block page, with the processes that users run."""

import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from itertools import count

import psutil
import pytest

from tests.e2e.conftest import GARDEN
from tests.e2e.e2e_gateway import ANSWER_S, GatewayProcess, Origin, until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, trusting: dict[str, str]) -> Iterator[GatewayProcess]:
    """A running filter whose workers have inspected a page: until models are read, pages pass after the limit."""
    settings = {**trusting, "proxy__unknown": "inspect", "proxy__inspect_ms": "30000", "proxy__workers": "2"}
    other = Origin({f"/{number}": ("text/html", GARDEN.encode()) for number in range(1000)})
    numbers = count()
    with GatewayProcess(tmp_path_factory.mktemp("gateway") / "state", **settings) as running:

        def both_inspect() -> bool:
            running.get(f"{other.base}/{next(numbers) % 1000}")
            return all(running.status(name).get("counters", {}).get("inspected", 0) for name in ("proxy-0", "proxy-1"))

        until("inspection in both workers", both_inspect, 120.0)
        other.close()
        yield running


def test_the_very_first_visitor_is_spared(gateway: GatewayProcess, http_site: Origin, https_site: Origin) -> None:
    for site, path in ((http_site, "/casino/1"), (https_site, "/casino/2"), (http_site, "/zh")):
        answer = gateway.get(f"{site.base}{path}")
        assert (answer.status, answer.reason) == (403, "learned")
        assert "score" in answer.text
    assert gateway.get(f"{http_site.base}/garden/1").status == 200
    assert len(gateway.get(f"{http_site.base}/data.bin").text) == 100_000


def test_what_was_found_counts_in_every_worker_and_is_never_fetched(gateway: GatewayProcess, http_site: Origin) -> None:
    url = f"{http_site.base}/casino/3"
    assert gateway.get(url).status == 403
    verdict = until(
        "learned entry", lambda: found if (found := gateway.json("check", url)["verdict"])["action"] == "block" else None
    )
    assert (verdict["reason"], verdict["source_list"]) == ("learned", "learned:gambling")
    asked = http_site.fetches.total()
    until("block in both workers", lambda: all(gateway.get(url).reason == "learned" for _ in range(8)))
    assert http_site.fetches.total() <= asked + 8
    assert http_site.crawls("/casino/3") == 0


def test_a_personal_page_is_judged_and_forgotten(gateway: GatewayProcess, http_site: Origin) -> None:
    url = f"{http_site.base}/casino/4"
    assert gateway.get(url, {"Authorization": "Basic eA=="}).status == 403
    assert gateway.json("check", url)["verdict"]["reason"] == "unknown"


def test_the_looking_process_comes_back(gateway: GatewayProcess, http_site: Origin) -> None:
    for name in ("proxy-0", "proxy-1"):
        for child in gateway.child(name).children():
            child.kill()
            psutil.wait_procs([child], 5)
    until("look", lambda: gateway.get(f"{http_site.base}/casino/5").status == 403, 30.0)


def test_a_user_asks_and_the_operator_allows(gateway: GatewayProcess, http_site: Origin) -> None:
    url = f"{http_site.base}/casino/6"
    page = gateway.get(url).text
    assert 'method="post"' in page
    action = page.partition('action="')[2].partition('"')[0]
    form = urllib.parse.urlencode({"url": url, "comment": "for the museum"}).encode()
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": f"http://{gateway.address}"}))

    def ask() -> bool:  # blocked for good once it is learned
        try:
            with opener.open(f"{http_site.base}{action}", form, timeout=ANSWER_S) as answer:
                return b"was noted" in answer.read()
        except urllib.error.HTTPError:
            return False

    until("noted request", ask)
    (request,) = until("request", lambda: gateway.json("request", "list"))
    assert (request["url"], request["comment"], request["reason"]) == (url, "for the museum", "learned")
    assert gateway.cli("request", "approve", str(request["request_id"]), "--all").returncode == 0
    until("page", lambda: gateway.get(url).status == 200, 2.0)
    assert gateway.json("request", "list") == []

"""What happens to harmful pages by category, and pages alike decided together: with the processes that users run."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import CASINO
from tests.e2e.e2e_gateway import GatewayProcess, Origin, until

HTML = "text/html; charset=utf-8"
STORY = " ".join(
    f"Table number {number} opens at {number % 12} every evening for guests who like the wheel." for number in range(80)
)
REEF = CASINO.replace("</body>", f"<p>{STORY}</p></body>")
DRUGS = (
    "<html><head><title>Buy cocaine online, discreet shipping</title></head><body><p>Order MDMA, LSD and crystal meth with "
    "stealth shipping worldwide. Pay with bitcoin, no prescription needed. Pure cocaine for sale, order now.</p></body></html>"
)
MALWARE = (
    "<html><head><title>Free keygen and crack download</title></head><body><p>Download the crack and the keygen, disable your "
    "antivirus first, run the activator as administrator. Serial keys, patch, full version cracked, free download.</p></body>"
    "</html>"
)


@pytest.fixture
def origin() -> Any:
    site = Origin({
        "/reef": (HTML, REEF.encode()),
        "/again": (HTML, REEF.encode()),
        "/more": (HTML, REEF.encode()),
        "/mirror": (HTML, REEF.replace("Table number 7 ", "Table no. 7 ").encode()),
        "/drugs": (HTML, DRUGS.encode()),
        "/malware": (HTML, MALWARE.encode()),
    })  # fmt: skip
    yield site
    site.close()


def tasks(gateway: GatewayProcess, wanted: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
    """Waits until the tasks are as wanted."""

    def look() -> list[dict[str, Any]] | None:
        found: list[dict[str, Any]] = gateway.json("review", "list", "--state", "all")
        return found if wanted(found) else None

    return until("tasks", look, 20.0)


@pytest.mark.slow
def test_each_category_has_its_mode_and_pages_alike_are_decided_together(state: Path, origin: Origin) -> None:
    def reason(path: str) -> str:
        return gateway.get(f"{origin.base}{path}").reason

    with GatewayProcess(state, learn__modes="drugs=review,malware=block") as gateway:
        for path in ("/reef", "/mirror", "/drugs", "/malware"):
            assert gateway.get(f"{origin.base}{path}").status == 200
        found = {task["url"].removeprefix(origin.base): task for task in tasks(gateway, lambda found: len(found) == 3)}

        # Blocked at once, without asking; blocked at once, and asked; asked only.
        until("block pages", lambda: {reason(path) for path in ("/malware", "/reef", "/mirror")} == {"learned"})
        assert (found["/drugs"]["blocked"], reason("/drugs")) == (False, "")
        drugs = str(found["/drugs"]["task"])
        assert gateway.cli("review", "approve", drugs).returncode == 0
        until("block page", lambda: reason("/drugs") == "learned", 2.0)
        assert gateway.cli("review", "undo", drugs).returncode == 0
        until("page again", lambda: reason("/drugs") == "", 2.0)

        # Two pages that are nearly the same stand in one group, and one word decides both.
        assert found["/reef"]["group"] == found["/mirror"]["group"]
        grouped = gateway.json("review", "list", "--group", str(found["/mirror"]["task"]))
        assert {task["url"] for task in grouped} == {f"{origin.base}/reef", f"{origin.base}/mirror"}
        assert (
            gateway.cli("review", "reject", str(found["/reef"]["task"]), "--alike", "--by", "ada", "--note", "cards").returncode
            == 0
        )
        until("pages again", lambda: (reason("/reef"), reason("/mirror")) == ("", ""), 2.0)

        # All of it stands in the record, the export and the counts.
        log = gateway.json("review", "log")
        assert [(step["who"], step["action"], step["note"]) for step in log[:2]] == [("ada", "reject", "cards")] * 2
        assert [(step["action"], step["undone"]) for step in log[2:]] == [("undo", False), ("approve", True)]
        lines = [json.loads(line) for line in gateway.cli("review", "export").stdout.splitlines()]
        assert {(line["state"], len(line["steps"])) for line in lines} == {("rejected", 1), ("open", 2)}
        examples = [json.loads(line) for line in gateway.cli("review", "export", "--examples").stdout.splitlines()]
        assert [example["label"] for example in examples] == ["", ""], "rejected pages are examples of harmless ones"
        level = gateway.json("review", "stats")
        assert (level["open"], level["decided_in_7_days"]) == (1, 2)
        assert level["oldest_open_hours"] is not None


@pytest.mark.slow
def test_known_content_is_refreshed_by_a_hit_over_a_restart(state: Path, origin: Origin) -> None:
    """The same body at another address costs no judgement, counts as a hit, and the hit outlives the processes."""
    with GatewayProcess(state, learn__passive="false") as gateway:
        gateway.get(f"{origin.base}/reef")
        tasks(gateway, lambda found: len(found) == 1)
        gateway.get(f"{origin.base}/again")
        tasks(gateway, lambda found: len(found) == 2)
        assert gateway.stop() == 0
        assert gateway.json("fingerprints", "stats")["hits"] == 1
        gateway.start()
        gateway.get(f"{origin.base}/more")
        tasks(gateway, lambda found: len(found) == 3)
        until("count", lambda: gateway.status("learner").get("counters", {}).get("fingerprint_hits") == 1)
        assert gateway.stop() == 0
    assert gateway.json("fingerprints", "stats")["hits"] == 2

"""A state folder with decisions, clients and lists, for tests of pages and API."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from gatewayfilter import wiring
from gatewayfilter.model import Client, Group, LogRecord, parse_matcher
from gatewayfilter.use_cases.policies import PolicyEditor
from tests.web.web_fakes import loaded_for

TABLET = "192.168.1.20"
LAPTOP = "192.168.1.30"
OTHER = "192.168.1.77"


def decision(
    at: float, url: str, client: str = TABLET, action: str = "allow", reason: str = "unknown", **more: object
) -> LogRecord:
    """Returns a record of the log."""
    values = {"method": "GET", "resource_type": "document", "elapsed_us": 12} | more
    return LogRecord(at=at, client=client, url=url, action=action, reason=reason, **values)  # type: ignore[arg-type]


def usual(now: float) -> list[LogRecord]:
    """Returns some decisions of the last hour, oldest first."""
    return [
        decision(now - 3000, "https://news.example/today", LAPTOP, reason="whitelist"),
        decision(now - 2000, "https://lucky.example/bonus?x=1", TABLET),
        decision(
            now - 1900,
            "https://lucky.example/bonus?x=1",
            TABLET,
            "block",
            "learned",
            source_list="learned:gambling",
            category="gambling",
        ),
        decision(
            now - 1800,
            "https://cdn.ads.example/a.js",
            TABLET,
            "block",
            "adblock",
            source_list="easylist",
            rule="||ads.example^",
            category="ads",
            resource_type="script",
        ),
        decision(now - 1700, "https://poki.example/", TABLET, "block", "schedule", rule="bedtime", category="games"),
        decision(now - 60, "https://bank.example/", OTHER, "allow", "splicelist"),
    ]


def fill(data_dir: Path, records: Sequence[LogRecord] = ()) -> None:
    """Writes decisions, and two clients in a group."""
    with closing(wiring.open_store(loaded_for(data_dir).settings)) as store:
        editor = PolicyEditor(store.policies)
        editor.add_group(Group("kids"))
        editor.add_client(Client("Kim's tablet", (parse_matcher(TABLET),), group="kids", icon="tablet"))
        editor.add_client(Client("laptop", (parse_matcher(LAPTOP),)))
        if records:
            store.log.write(records)
            while store.log_counter.step():
                pass


def publish(data_dir: Path) -> None:
    """Publishes the lists of a fresh state folder."""
    settings = loaded_for(data_dir).settings
    with closing(wiring.open_store(settings)) as store:
        wiring.open_engine(settings, store)

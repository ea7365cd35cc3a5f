"""A state folder in which every text that a person, a page or a device can choose is hostile, or as long as it may be."""

import re
import time
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from gatewayfilter import wiring
from gatewayfilter.interfaces import BypassLink, CrawlRequest, Priority
from gatewayfilter.model import Actor, AuditEntry, EntryKind, LogRecord, Reason, Role, Scope, Via
from gatewayfilter.proxy.listener.pinned_apps import PinnedApp, PinnedAppsFile
from gatewayfilter.sources.formats.list_format import ListFormat
from gatewayfilter.store import Store
from gatewayfilter.use_cases.lists.source_changes import SourceOptions, add_source, changeable_sources
from gatewayfilter.use_cases.policies import PolicyEditor
from tests.web.learning_fakes import add_task, ask
from tests.web.web_fakes import Dashboard, dashboard, loaded_for

SCRIPT: Final = '"><script>alert(1)</script>'
IMAGE: Final = "\"'><img src=x onerror=alert(1)>"
TEXTS: Final = (
    SCRIPT,
    IMAGE,
    "javascript:alert(1)",
    "\u202egnp.exe\u2066 \u0627\u0644\u0639\u0631\u0628\u064a\u0629",
    "W" * 2_000,
    "{{ 7 * 7 }}{% raw %}${7*7}",
    '=HYPERLINK("http://evil.example/","x")',
    "</textarea></title></style></script>",
    "\u0e01\u0e34\u0e34\u0e34" * 30,
)
"""What is typed, claimed or fetched."""
NAMES: Final = ("<img src=x onerror=alert(1)>", "W" * 100, "{{7*7}}", "=1+1", "\u6c49\u5b57\u5f88\u957f" * 20, "Kim's tablet")
"""What may be the name of a client, group, policy, schedule or quota."""
MOBILE: Final = "Mozilla/5.0 " + SCRIPT + " " + "M" * 400
NAME: Final = NAMES[0]
WIDE: Final = NAMES[1]
API: Final = "/api/v1"


def fill_hostile(data_dir: Path) -> None:
    """Fills a state folder."""
    wiring.prepare_data_dir(loaded_for(data_dir).settings)
    with dashboard(data_dir) as web:
        _people(web)
        _rules(web)
        _words(web)
        _extraction(web)
        store = web.services.store
        _learned(store)
        _traffic(store)
        _accounts(web)
        for app, text in enumerate(TEXTS):
            host = f"a{app}.{text[:200]}"
            PinnedAppsFile.in_folder(data_dir).add(PinnedApp("192.0.2.1", host, time.time(), time.time() + 9e5, 4))
    _sources(data_dir)
    with closing(wiring.open_store(loaded_for(data_dir).settings)) as store:
        wiring.open_engine(loaded_for(data_dir).settings, store)


def _taken(web: Dashboard, path: str, **body: Any) -> None:
    answer = web.client.post(f"{API}/{path}", json=body)
    assert answer.is_success, (path, answer.text)


def _people(web: Dashboard) -> None:
    long = TEXTS[4][:400]
    for number, name in enumerate(NAMES):
        note = (SCRIPT, long, IMAGE)[number % 3][:200]
        _taken(web, "policies", name=name, values={"safesearch": "on", "service.tiktok": "block", "category.games": "block"})
        _taken(web, "groups", name=name, policy=name, note=note)
        addresses = [f"192.0.2.{number + 1}", f"2001:db8:1234:5678:9abc:def0:1234:{number + 1}"]
        _taken(web, "clients", name=name, addresses=addresses, group=name, note=note)
        windows = [{"begin": "21:00", "end": "06:30", "days": ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]}]
        _taken(web, "schedules", name=name, policy=name, effect="block-all", windows=windows)
        _taken(web, "quotas", name=name, policy=name, kind="category", target="games", minutes=60)
    editor = PolicyEditor(web.services.store.policies)
    for name in NAMES[:3]:
        editor.set_client(name, policy=name)
    _taken(web, "pauses", scope="client", target=NAME, minutes=50)
    _taken(web, "pauses", scope="group", target=WIDE, minutes=50)
    now = time.time()
    seen = {f"198.51.100.{number + 1}": f"02:00:00:00:00:{number:02x}" for number in range(len(TEXTS))}
    devices = web.services.store.devices
    devices.seen(seen, now)
    devices.named(list(seen), dict(zip(seen, (text[:250] for text in TEXTS), strict=True)), now)


def _rules(web: Dashboard) -> None:
    for number, text in enumerate(TEXTS):
        rest = {"comment": text[:500], "group": text[:100].strip("\u2066 "), "force": True}
        _taken(web, "rules", patterns=[f"r{number}.example"], action="block", **rest)
        web.client.post(f"{API}/rules", json={"patterns": [f"p{number}.example/{text}"], "action": "allow", **rest})
    _taken(web, "rules", patterns=["w" * 60 + "." + "w" * 60 + ".example"], action="splice", force=True)
    _taken(web, "rules", patterns=["s.example"], action="block", scope=f"client:{NAME}", force=True)


def _extraction(web: Dashboard) -> None:
    field = f"[fields.title]\ncss = 'a.{'w' * 300}'\n"
    source = "urls = 'https?://news\\.example/<script>alert.1.</script>.*'\n" + field
    answer = web.client.put(f"{API}/extraction-rules/{'w' * 40}", json={"source": source})
    assert answer.is_success, answer.text


def _words(web: Dashboard) -> None:
    phrases = [text[:60] for text in (SCRIPT, IMAGE, TEXTS[4], TEXTS[7])]
    answer = web.client.post("/words/gambling/add", data={"phrases": "\n".join(phrases), "weight": "7"})
    assert answer.status_code == 303, re.findall("notice[^<]*<[^<]*<[^<]*", answer.text)


def _learned(store: Store) -> None:
    now = time.time()
    for number, text in enumerate(TEXTS):
        address = f"http://h{number}.example/{text}"
        words = ((text[:200], 36.0, "title"), ("casino", 8.0, "main"))
        add_task(store, address, text=f"casino {text} " * 3, title=text, words=words, group_id=number % 3)
        ask(store, address, comment=text[:300], name=NAMES[number % len(NAMES)], source_list=text[:80], rule=text)
    store.unblock.deny([1], word=TEXTS[0], now=now)
    store.unblock.deny([2], word=TEXTS[4][:300], now=now)
    for text, whom, until in ((IMAGE, f"client:{NAME}", now + 9e4), (TEXTS[4], f"group:{WIDE}", now - 9)):
        link = BypassLink(f"http://a.example/{text}", EntryKind.URL, f"a.example/{text}", whom, until, once=True, created_at=now)
        store.bypass.add(link)
    for text in TEXTS:
        store.frontier.add([CrawlRequest(f"http://dead.example/{text}", Priority.MANUAL)], now)
        for lease in store.frontier.lease(1, 60, now):
            store.frontier.dead_letter(lease, f"no answer {text}"[:500])
    store.frontier.add([CrawlRequest(f"http://w.example/{text}", Priority.VISIT, task="forums") for text in TEXTS], now)


def _traffic(store: Store) -> None:
    now, records = time.time(), list[LogRecord]()
    reasons = list(Reason)
    for number in range(54):
        text, reason = TEXTS[number % len(TEXTS)], reasons[number % len(reasons)]
        action = ("block", "allow", "block")[number % 3]
        client = (f"192.0.2.{number % 6 + 1}", f"198.51.100.{number % 9 + 1}", "2001:db8:1234:5678:9abc:def0:1234:5678")[
            number % 3
        ]
        host = f"{'h' * 60}.{'o' * 60}{number % 7}.example" if number % 5 == 0 else f"site{number % 7}.example"
        named, category = text[:120], ("games", text[:60])[number % 2]
        url, at = f"https://{host}/{text}", now - 7000 + number * 120
        records.append(LogRecord(at, client, "GET", url, "document", action, reason, named, text, category, 12, text[:60]))
    store.log.write(records)
    while store.log_counter.step():
        pass


def _accounts(web: Dashboard) -> None:
    access = web.services.access
    for number, (name, role) in enumerate(zip(("W" * 60, "pat", "Ada"), Role, strict=True)):
        account = access.accounts.add(name, role, f"correct horse battery {number}")
        access.sessions.open(account, "192.0.2.0/24", MOBILE)
        access.tokens.add(account, IMAGE[:60], Scope.ADMIN if role is Role.ADMIN else Scope.READ, 9e6)
    for text in TEXTS:
        web.services.store.audit.add(
            AuditEntry(0, time.time(), Actor(text[:60], Via.SESSION, text[:60]), "rule.added", text, text)
        )


def _sources(data_dir: Path) -> None:
    settings = loaded_for(data_dir).settings
    known = changeable_sources(settings)
    file = data_dir.parent / f"{SCRIPT.replace('/', '')}.txt"
    file.write_text(f"# Title: {IMAGE}\n0.0.0.0 listed.example\n", encoding="utf-8")
    add_source(known, str(file), SourceOptions(name="w" * 40, list_format=ListFormat.HOSTS, category="malware"))
    gone = f"http://127.0.0.1:9/{'w' * 300}?{quote(SCRIPT)}"
    add_source(known, gone, SourceOptions(name="gone", list_format=ListFormat.HOSTS, category="malware"))

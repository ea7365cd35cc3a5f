"""An old database with rows in it comes out whole, from whatever version it was of."""

import zlib
from contextlib import closing
from typing import Any, Final

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import JSON, Boolean, MetaData, Table, create_engine, insert, inspect, select

from gatewayfilter.model import ChangeKind, ContentId, ContentKind, EntryKind, Evidence, ListAction, ReviewState
from gatewayfilter.store import Store
from gatewayfilter.store.sql import schema_version as schema_version_module
from gatewayfilter.store.sql.database import Area, Database
from gatewayfilter.store.sql.schema import METADATA
from gatewayfilter.urls import digest_of

URL: Final = "http://casino.example/play"
KEY: Final = "casino.example/play"
SAID: Final = {
    "category": "gambling",
    "score": 42.5,
    "limit": 20.0,
    "scores": {"gambling": 42.5},
    "evidence": [["casino", "gambling", 12.0, "title", 4]],
    "title": "Casino 赌场",
    "charset": "utf-8",
    "text_digest": "00" * 16,
}
ARITHMETIC: Final = {
    "words_version": "w", "category": "gambling", "strong": 40.0, "topic": 4.0, "topic_counted": 2.5, "context": 0.0,
    "context_counted": 0.0, "opinion": 0.0, "score": 42.5, "limit": 20.0, "words": 5, "min_words": 2,
}  # fmt: skip
ROWS: Final[dict[str, list[dict[str, Any]]]] = {
    "person_rules": [
        {
            "id": 3, "identity": b"i" * 16, "action": "allow", "kind": "url", "pattern": "a.example/", "group_name": "",
            "comment": "c",
        },
        {
            "id": 4, "identity": b"j" * 16, "action": "block", "kind": "host", "pattern": "b.example", "group_name": "kids",
            "comment": "",
        },
    ],
    "learned_entries": [
        {
            "digest": digest_of(KEY), "key": KEY, "action": "block", "category": "gambling", "url": URL, "detail": "score 42.5",
            "created_at": 1.0, "expires_at": 9e9,
        },
    ],
    "list_changes": [
        {
            "seq": 6, "kind": "person-added",
            "payload": {
                "rule_id": 3, "action": "allow", "kind": "url", "pattern": "a.example/", "comment": "c", "group": "",
                "expires_at": None, "enabled": True,
            },
        },
        {"seq": 7, "kind": "learned-added", "payload": {"key": KEY}},
    ],
    "frontier": [
        {
            "id": 4, "digest": digest_of(f"{URL}?old"), "url": f"{URL}?old", "priority": 10, "state": "resting",
            "not_before": 0.0, "due_at": 9e9, "attempts": 1, "token": "", "error": "", "slot": 9, "task": "", "depth": 0,
            "holder": "",
        },
        {
            "id": 5, "digest": digest_of(URL), "url": URL, "priority": 10, "state": "waiting", "not_before": 0.0, "due_at": 0.0,
            "attempts": 1, "token": "", "error": "", "slot": 9, "task": "news", "depth": 2, "holder": "",
        },
    ],
    "decisions": [
        {
            "id": 5, "at": 4.0, "client": "10.0.0.2", "method": "GET", "url": URL, "resource_type": "document", "action": "allow",
            "reason": "person-allow", "source_list": "", "rule": "a.example/", "category": "", "elapsed_us": 9,
        },
        {
            "id": 6, "at": 5.0, "client": "10.0.0.2", "method": "GET", "url": URL, "resource_type": "document", "action": "block",
            "reason": "learned", "source_list": "", "rule": "", "category": "gambling", "elapsed_us": 9,
        },
    ],
    "page_verdicts": [
        {
            "digest": digest_of(URL), "url": URL, "category": "gambling", "judged_at": 4.0, "classification": SAID,
            "host": "casino.example", "text_digest": b"t" * 16, "archived": "pages-1:2:3",
        },
    ],
    "fingerprints": [
        {
            "kind": "page", "digest": b"p" * 16, "proof": b"q" * 16, "category": "gambling", "judge": "ada", "words": "",
            "url": URL, "classification": SAID, "judged_at": 4.0, "expires_at": 9e9, "hits": 2,
        },
    ],
    "review_tasks": [
        {
            "id": 8, "digest": digest_of(KEY), "kind": "page", "url": URL, "key": KEY, "category": "gambling",
            "state": "rejected", "group_id": 8, "blocked": False, "created_at": 4.0, "decided_at": 5.0, "decided_by": "ada",
            "title": "Casino 赌场", "simhash": (5).to_bytes(8), "page_digest": b"p" * 16, "page_proof": b"q" * 16,
            "text_digest": b"t" * 16, "text_proof": b"u" * 16, "classification": SAID,
            "text": zlib.compress("the best casino 赌场".encode()),
            "final_url": "http://other.example/", "arithmetic": ARITHMETIC,
        },
    ],
    "review_steps": [
        {"id": 9, "task_id": 8, "at": 5.0, "who": "ada", "action": "reject", "undone": False, "detail": {"note": "a museum"}},
    ],
    "unblock_requests": [
        {
            "id": 2, "digest": b"d" * 16, "url": URL, "client": "10.0.0.2", "reason": "person-block", "source_list": "",
            "rule": "", "category": "gambling", "comment": "please", "at": 5.0, "times": 2,
        },
    ],
    "policy_items": [{"kind": "group", "name": "kids", "record": {"kind": "group", "name": "kids", "policy": "", "note": ""}}],
    "crawlers": [{"name": "box:0", "seen_at": 5.0}],
    "frontier_pauses": [{"id": 1, "since": 5.0}],
    "task_sites": [{"digest": b"s" * 16, "task": "news", "site": "a.example", "pages": 3, "since": 5.0}],
    "page_validators": [
        {
            "digest": digest_of(URL), "url": URL, "etag": '"1"', "last_modified": "", "judged_by": "words", "fetched_at": 5.0,
            "contents": b"p" * 33,
        },
    ],
}  # fmt: skip
"""What stands in an old database, of every table as far as the version knows table and column."""
CHANGED: Final = (
    ("0003", "person_rules", "enabled"),  # rules of a group begin switched off
    ("0013", "frontier", "state"),  # "resting" is "done"
    ("0010", "page_validators", "*"),  # of pages whose content is not known, the validators are forgotten
    ("0024", "fingerprints", "digest"),  # the digest of a page is its proof
    ("0024", "review_tasks", "page_digest"),
    ("0024", "page_validators", "contents"),
)
RENAMED: Final = {"person_rules": "manual_rules", "arithmetic": "score_breakdown"}
"""Tables and columns that have had another name since 0013."""
OFTEN: Final = ("0002", "0010", "0013", "0023")
"""Versions that are tried in every run; the others take the same way."""
VERSIONS: Final = [
    pytest.param(version, marks=() if version in OFTEN else pytest.mark.slow)
    for version in (f"{n:04}" for n in (*range(1, 15), 23))
]


def _migrate(url: str, *steps: tuple[str, str]) -> None:
    config = Config()
    config.set_main_option("script_location", str(schema_version_module._MIGRATIONS))
    with closing(Database.from_url(url)) as database, database.write(Area.SCHEMA) as connection:
        config.attributes["connection"] = connection
        for step, revision in steps:
            getattr(command, step)(config, revision)


def _fill(url: str) -> dict[str, list[dict[str, Any]]]:
    """Writes the rows as far as the database knows them. Returns what was written."""
    engine = create_engine(url)
    written: dict[str, list[dict[str, Any]]] = {}
    with engine.begin() as connection:
        for name in inspect(connection).get_table_names():
            if name not in ROWS:
                continue
            table = Table(name, MetaData(), autoload_with=connection)
            for column in table.columns:  # what SQLite tells of a column is only how it is kept
                declared = METADATA.tables[RENAMED.get(name, name)].columns[RENAMED.get(column.name, column.name)].type
                if isinstance(declared, JSON | Boolean):
                    column.type = declared
            written[name] = [{key: value for key, value in row.items() if key in table.columns} for row in ROWS[name]]
            connection.execute(insert(table), written[name])
    engine.dispose()
    return written


def _rows(url: str, name: str, columns: list[str]) -> list[dict[str, Any]]:
    table = METADATA.tables[RENAMED.get(name, name)]
    engine = create_engine(url)
    with engine.connect() as connection:
        found = [
            dict(row._mapping)
            for row in connection.execute(
                select(*(table.columns[RENAMED.get(column, column)].label(column) for column in columns)).order_by(
                    *table.primary_key
                )
            )
        ]
    engine.dispose()
    return [{key: bytes(value) if isinstance(value, memoryview) else value for key, value in row.items()} for row in found]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_row_of_an_old_database_comes_out_as_it_was(store_url: str, version: str) -> None:
    _migrate(store_url, ("downgrade", "base"), ("upgrade", version))
    written = _fill(store_url)
    with closing(Store.open(store_url)):
        pass
    passed = {(table, column) for revision, table, column in CHANGED if revision > version}
    for name, rows in written.items():
        if (name, "*") in passed:
            assert _rows(store_url, name, ["digest"]) == []
        else:
            columns = [column for column in rows[0] if (name, column) not in passed]
            assert _rows(store_url, name, columns) == [{key: row[key] for key in columns} for row in rows], name
    engine = create_engine(store_url)
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []
    engine.dispose()


def test_what_is_there_is_read_by_this_version(store_url: str) -> None:
    """From the first version that knew all of it, through the repositories."""
    _migrate(store_url, ("downgrade", "base"), ("upgrade", "0004"))
    _fill(store_url)
    with closing(Store.open(store_url)) as store:
        rules = store.lists.rules()
        assert [(rule.rule_id, rule.action, rule.kind, rule.enabled) for rule in rules] == [
            (3, ListAction.ALLOW, EntryKind.URL, True),
            (4, ListAction.BLOCK, EntryKind.HOST, True),  # 0004 had switches already
        ]
        assert [entry.detail for entry in store.lists.find_learned([KEY])] == ["score 42.5"]
        task = store.reviews.get(8)
        assert task is not None
        assert (task.state, task.decided_by, task.text) == (ReviewState.REJECTED, "ada", "the best casino 赌场")
        assert (task.final_url, task.score_breakdown) == ("", None)
        assert task.classification.evidence == (Evidence("casino", "gambling", 12.0, "title", 4),)
        assert [step.detail for step in store.reviews.steps(8)] == [{"note": "a museum"}]
        known = store.fingerprints.find(ContentId(ContentKind.PAGE, b"q" * 16, b"q" * 16), 10.0)
        assert known is not None
        assert (known.judge, known.hits) == ("ada", 2)
        verdict = store.verdicts.find(URL)
        assert verdict is not None
        assert verdict[0].title == "Casino 赌场"
        assert store.verdicts.archived(URL) == ""
        assert [(request.comment, request.reason) for request in store.unblock.open_requests()] == [("please", "manual-block")]
        assert [record.reason for _, record in store.log.tail(10)] == ["manual-allow", "learned"]
        (change,) = store.feed.read(0, 1)
        assert (change.kind, change.manual and change.manual.rule_id) == (ChangeKind.MANUAL_ADDED, 3)
        assert store.feed.last_seq() == 7
        assert store.frontier.stats(100.0) == {"waiting": 1, "due": 1, "leased": 0, "done": 1, "dead": 0}
        assert [lease.url for lease in store.frontier.lease(5, 100.0, 60.0)] == [URL]


def test_rules_of_groups_from_before_switches_begin_switched_off(store_url: str) -> None:
    _migrate(store_url, ("downgrade", "base"), ("upgrade", "0002"))
    _fill(store_url)
    with closing(Store.open(store_url)) as store:
        assert [(rule.group, rule.enabled) for rule in store.lists.rules()] == [("", True), ("kids", False)]


def test_the_identity_of_a_page_is_its_proof_wherever_it_is_kept(store_url: str) -> None:
    page, other, text = b"p" + b"d" * 16 + bytes(range(16)), b"p" + b"e" * 16 + b"\0" * 16, b"t" + b"m" * 16 + b"n" * 16
    row = ROWS["fingerprints"][0]
    kept = [
        row | {"digest": page[1:17], "proof": page[17:]},
        row | {"digest": other[1:17], "proof": other[17:]},
        row | {"kind": "text", "digest": text[1:17], "proof": text[17:]},
        row | {"kind": "image", "digest": b"i" * 16, "proof": bytes(16)},
        row | {"digest": b"1" * 16, "proof": b"same" * 4},
        row | {"digest": b"2" * 16, "proof": b"same" * 4},
    ]
    noted = [page, page + text, text, b"i" + b"i" * 16 + bytes(16), b"", other]
    validators = [
        ROWS["page_validators"][0] | {"digest": bytes([n]) * 16, "contents": contents} for n, contents in enumerate(noted)
    ]
    _migrate(store_url, ("downgrade", "0023"))
    engine = create_engine(store_url)
    with engine.begin() as connection:
        for name, rows in (("fingerprints", kept), ("page_validators", validators), ("review_tasks", ROWS["review_tasks"])):
            table = METADATA.tables[name]
            connection.execute(
                insert(table), [{key: value for key, value in one.items() if key in table.columns} for one in rows]
            )
    engine.dispose()
    with closing(Store.open(store_url)):
        pass
    assert _rows(store_url, "fingerprints", ["kind", "digest", "proof", "judge"]) == [
        {"kind": kind, "digest": digest, "proof": proof, "judge": "ada"}
        for kind, digest, proof in (
            ("image", b"i" * 16, bytes(16)),
            ("page", other[17:], other[17:]),
            ("page", page[17:], page[17:]),
            ("text", text[1:17], text[17:]),
        )
    ]
    of_page = b"p" + 2 * page[17:]
    assert [one["contents"] for one in _rows(store_url, "page_validators", ["contents"])] == [
        of_page, of_page + text, text, noted[3], b"", b"p" + 2 * other[17:],
    ]  # fmt: skip
    (task,) = _rows(store_url, "review_tasks", ["page_digest", "page_proof", "text_digest"])
    assert task == {"page_digest": b"q" * 16, "page_proof": b"q" * 16, "text_digest": b"t" * 16}

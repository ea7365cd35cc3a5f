"""Every line of every list that speaks of a host or URL."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.model import LogRecord
from gatewayfilter.store import Store
from gatewayfilter.urls import digest_of

type Cli = Callable[..., Any]

LISTS = {
    "plain-hosts.txt": "# c\n127.0.0.1 localhost\n0.0.0.0 www.ads.example.com ads.example.com # two\n",
    "plain-domains.txt": "other.example\n\nexample.com\nAds.Example.COM\nads.example.com.evil.test\n",
    "some-urls.txt": "http://ads.example.com/banner\nhttps://ads.example.com/else\n",
    "a-zone.txt": "$TTL 60\n@ SOA a. b. 1 2 3 4 5\nads.example.com CNAME .\n*.example.net CNAME .\n",
    "dns-masq.txt": "address=/other.example/ads.example.com/0.0.0.0\n",
    "some-digests.txt": f"# d\n{digest_of('ads.example.com').hex()}\n",
    "an-export.json": json.dumps([{"action": "block", "kind": "prefix", "pattern": "ads.example.com/banner/*"}]),
    "rules.txt": "! r\n||ads.example.com^$third-party\n@@||ads.example.com/banner$image\n/banner$script\n||else.example^\n",
}


@pytest.fixture
def lists(cli: Cli, tmp_path: Path) -> Cli:
    for name, text in LISTS.items():
        (tmp_path / name).write_text(text)
        added = cli("source", "add", tmp_path / name, "--category", "ads", "--no-publish")
        assert added.code == 0, added.err
    assert cli("publish").code == 0
    return cli


def test_every_line_is_found_with_its_number(lists: Cli) -> None:
    lists("list", "add", "*.example.com/ban*")
    lists("list", "add", "--splice", "ads.example.com", "--comment", "why")
    found = lists("list", "search", "http://ads.example.com/banner", "--json").json
    assert sorted((item["source"], item["line"], item["entry"]) for item in found["lists"]) == [
        ("a-zone", 3, "ads.example.com"),
        ("an-export", 1, "ads.example.com/banner/*"),
        ("dns-masq", 1, ".ads.example.com"),
        ("plain-domains", 3, ".example.com"),
        ("plain-domains", 4, ".ads.example.com"),
        ("plain-hosts", 3, "ads.example.com"),
        ("rules", 2, "||ads.example.com^$third-party"),
        ("rules", 3, "@@||ads.example.com/banner$image"),
        ("rules", 4, "/banner$script"),
        ("some-digests", 2, "ads.example.com"),
        ("some-urls", 1, "ads.example.com/banner"),
    ]
    assert [(item["rule"]["kind"], item["covers"]) for item in found["own"]] == [("wildcard", True), ("domain", True)]
    table = lists("list", "search", "ads.example.com").out
    assert "0.0.0.0 www.ads.example.com ads.example.com # two  → the host ads.example.com" in table


def test_sources_that_are_off_are_searched_and_say_so(lists: Cli) -> None:
    lists("source", "disable", "plain-domains")
    found = lists("list", "search", "www.example.com", "--json").json["lists"]
    assert [(item["source"], item["enabled"], item["line"]) for item in found] == [("plain-domains", False, 3)]
    assert "plain-domains (off)" in lists("list", "search", "www.example.com").out


def test_a_part_of_a_line_is_found(lists: Cli) -> None:
    found = lists("list", "search", "--partial", "EVIL", "--json").json["lists"]
    assert [(item["source"], item["line"], item["text"]) for item in found] == [("plain-domains", 5, "ads.example.com.evil.test")]
    assert lists("list", "search", "--partial", "nothing like it").code == 1


def test_international_names_are_found_however_lists_write_them(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "idn.txt").write_text("a.example\nbücher.example\nxn--bcher-kva.example\n[bad\n")
    cli("source", "add", tmp_path / "idn.txt", "--format", "domains")
    for name in ("bücher.example", "www.xn--bcher-kva.example"):
        found = cli("list", "search", name, "--json").json["lists"]
        assert [item["line"] for item in found] == [2, 3]


def test_addresses_are_found(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "ips.txt").write_text("192.0.2.7\n2001:db8:0:0::1\na.example\n")
    cli("source", "add", tmp_path / "ips.txt", "--format", "domains")
    assert [item["line"] for item in cli("list", "search", "http://192.0.2.7/x", "--json").json["lists"]] == [1]
    assert [item["line"] for item in cli("list", "search", "http://[2001:db8::1]/", "--json").json["lists"]] == [2]


def test_import_reads_compressed_and_wide_files(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"a.example\n"))
    (tmp_path / "b.txt").write_bytes("b.example\n".encode("utf-16"))
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"a.example\n")[:-3])
    assert cli("list", "import", tmp_path / "a.gz").code == 0
    assert cli("list", "import", tmp_path / "b.txt").code == 0
    assert "damaged or cut off" in cli("list", "import", tmp_path / "cut.gz").complains()
    assert [rule["pattern"] for rule in cli("list", "show", "--json").json] == [".a.example", ".b.example"]


@pytest.mark.slow
def test_what_is_no_list_for_people_is_pointed_to_the_sources(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("".join(f"host{number}.example\n" for number in range(100_001)))
    answer = cli("list", "import", tmp_path / "long.txt")
    assert (answer.code, "gatewayfilter source add" in answer.err) == (2, True)
    assert cli("list", "show", "--json").json == []


def test_a_preview_says_what_would_change(cli: Cli, tmp_path: Path, state: Path) -> None:

    cli("list", "add", "own.example")
    store = Store.open(f"sqlite:///{state / 'gatewayfilter.sqlite3'}")
    visited = ["http://casino.example/a", "http://casino.example/b", "http://own.example/", "http://fine.example/"]
    store.log.write([LogRecord(1.0, "", "GET", url, "document", "allow", "unknown") for url in visited])
    store.close()
    (tmp_path / "known.txt").write_text("casino.test\n")
    cli("source", "add", tmp_path / "known.txt")
    (tmp_path / "new.txt").write_text("casino.example\ncasino.test\nown.example\n")
    answer = cli("source", "add", tmp_path / "new.txt", "--preview")
    assert "such as casino.example, casino.test, own.example" in answer.out
    assert "2 of them new, 1 on a list in use already" in answer.out
    assert "would have blocked casino.example: 2 requests (.casino.example)" in answer.out
    assert "own.example: " not in answer.out  # blocked already
    changes = cli("source", "add", tmp_path / "new.txt", "--preview", "--json").json["changes"]["new"]
    assert (changes["known"], changes["looked_at"], [item["host"] for item in changes["visited"]]) == (1, 4, ["casino.example"])
    assert "new" not in [item["definition"]["name"] for item in cli("source", "status", "--json").json]

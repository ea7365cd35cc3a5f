"""Trusted hosts: which hosts are, by files that the operator chose and by reserved suffixes; and what follows for a page."""

import logging
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.errors import ConfigError
from gatewayfilter.interfaces import Page
from gatewayfilter.learn import HostSecondLook, TrustedHosts, UserContentHosts
from gatewayfilter.learn.verdicts import trusted_hosts
from gatewayfilter.learn.verdicts.public_service import public_service_suffix
from gatewayfilter.model import HOST_ZONE, Classification

HARMFUL = Classification("gambling", 900.0, 20.0, certainty=0.999999)

RESERVED = {
    "www.nist.gov": "gov",
    "www.gov.cn": "gov.cn",
    "health.gov.uk": "gov.uk",
    "cs.tsinghua.edu.cn": "edu.cn",
    "ox.ac.uk": "ac.uk",
    "who.int": "int",
    "www.nhs.uk": "nhs.uk",
    "soumu.go.jp": "go.jp",
    "ec.europa.eu": "europa.eu",
    "gov.example": "",
    "gov.com": "",
    "ac.com": "",
    "mygov.cn": "",
    "gov.cn.evil.example": "",
    "anyone.edu.pl": "",
    "shop.example": "",
    "gov.de": "",  # no suffix of the registry: anyone may hold it
}


@pytest.mark.parametrize(("host", "suffix"), RESERVED.items())
def test_reserved_suffixes(host: str, suffix: str) -> None:
    assert public_service_suffix(host) == suffix


@pytest.fixture
def ranked(tmp_path: Path) -> Path:
    path = tmp_path / "popular.csv"
    path.write_text('1,popular.example\n2,"Quoted.example"\n3,github.io\n4,news.site.example\n5,bücher.example\n6,facebook.com\n')
    return path


def test_an_entry_covers_its_host_and_what_is_below(ranked: Path) -> None:
    trusted = TrustedHosts([ranked], public_service=False, user_content=UserContentHosts(["facebook.com"]))
    for host in ("popular.example", "www.popular.example", "quoted.example", "news.site.example", "xn--bcher-kva.example"):
        assert trusted.reason_of(host).endswith("is a trusted host by popular.csv"), host
    for host in ("site.example", "unpopular.example", "someone.github.io", "github.io", "m.facebook.com", "127.0.0.1", "x.gov"):
        assert trusted.reason_of(host) == "", host


def test_a_plain_list_with_comments_is_read(tmp_path: Path) -> None:
    path = tmp_path / "plain.txt"
    path.write_text("\ufeff# mine\n\na.example\r\nb.example.\n")
    trusted = TrustedHosts([path])
    assert trusted.reason_of("a.example")
    assert trusted.reason_of("b.example")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [("<html><body>not found</body></html>\n", "line 1: neither a host"), ("a b c\n" * 3 + "a.example\n", "line 1: neither")],
)
def test_what_is_no_list_is_refused(tmp_path: Path, content: str, sentence: str) -> None:
    path = tmp_path / "list.csv"
    path.write_text(content)
    with pytest.raises(ConfigError, match=sentence):
        TrustedHosts([path])
    with pytest.raises(ConfigError, match=r"cannot read .*nowhere"):
        TrustedHosts([tmp_path / "nowhere.csv"])


def test_reading_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trusted_hosts, "MOST_LINES", 3)
    path = tmp_path / "list.csv"
    path.write_text("a.example\nb.example\n" + "x" * 400 + "\nd.example\n")
    trusted = TrustedHosts([path])
    assert trusted.reason_of("b.example")
    assert not trusted.reason_of("d.example")


def test_a_changed_file_is_read_again_and_a_bad_one_is_not_used(ranked: Path, caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    trusted = TrustedHosts([ranked], clock=lambda: now[0])

    def change(content: str) -> None:
        aside = ranked.with_suffix(".new")
        aside.write_text(content)
        aside.replace(ranked)

    def read() -> None:
        """Has the file looked at, and waits until it was read."""
        now[0] += 60.0
        trusted.reason_of("any.example")
        for thread in threading.enumerate():
            if thread.name == "trusted-hosts":
                thread.join(10)

    change("1,later.example\n")
    assert not trusted.reason_of("later.example")  # nothing is looked at more often than every few seconds
    read()
    assert trusted.reason_of("later.example")
    assert not trusted.reason_of("popular.example")
    with caplog.at_level(logging.WARNING):
        change("<html>\n")
        read()
        assert trusted.reason_of("later.example")
        ranked.unlink()
        read()
        assert trusted.reason_of("later.example")
        read()  # told once
    assert [record.message.rpartition("; ")[2] for record in caplog.records] == ["the hosts read before stay trusted"] * 2
    change("again.example\n")
    read()
    assert trusted.reason_of("again.example")


@pytest.mark.parametrize(
    ("url", "blocked"),
    [
        ("http://popular.example/", False),
        ("http://www.city.gov.uk/", False),
        ("http://facebook.com/someone", True),  # hosts of user content are treated as before
        ("http://shop.example/", True),
    ],
)
def test_words_alone_do_not_block_a_trusted_host(ranked: Path, url: str, *, blocked: bool) -> None:
    user_content = UserContentHosts(["facebook.com"])
    look = HostSecondLook(TrustedHosts([ranked], user_content=user_content), user_content)
    page = Page(url, url, 200, {}, b"x")
    seen = look.look(page, HARMFUL)
    assert seen.harmful == blocked
    assert seen.doubt == ("" if blocked else "gambling")
    assert [(hit.zone, hit.weight, hit.position) for hit in seen.evidence] == ([] if blocked else [(HOST_ZONE, 0.0, -1)])
    doubtful = replace(HARMFUL, category="", doubt="gambling")
    assert look.look(page, doubtful).doubt == "gambling"


def test_a_list_may_be_half_of_other_lines_and_comments_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_text("# mine\n\n#\n \n# more\na.example\nno host\n\n")
    trusted = TrustedHosts([path])
    assert trusted.reason_of("a.example") == "a.example is a trusted host by list.txt"
    assert [trusted.reason_of(f"other{number}.example") for number in range(50)] == [""] * 50
    path.write_text("# mine\na.example\nno host\nno host either\n")
    with pytest.raises(ConfigError, match=r"list\.txt, line 3: neither"):
        TrustedHosts([path])
    path.write_text("# nothing yet\n")
    assert len(trusted_hosts.read_hosts(path)) == 0
    assert TrustedHosts([path]).reason_of("a.example") == ""


def test_reading_is_bounded_in_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trusted_hosts, "MOST_LINES", 2)
    path = tmp_path / "list.txt"
    path.write_text("a.example\nb.example\nc.example\n")
    assert [bool(TrustedHosts([path]).reason_of(f"{name}.example")) for name in "abc"] == [True, True, False]


def test_files_are_looked_at_every_five_seconds_and_read_one_at_a_time(ranked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now, begun = [0.0], list[dict[str, Any]]()

    class Thread:
        """Is begun, and runs when the test says so."""

        def __init__(self, **given: Any) -> None:
            begun.append(given)

        def start(self) -> None:
            assert begun[-1]["daemon"] is True

    monkeypatch.setattr(trusted_hosts, "threading", SimpleNamespace(Thread=Thread, Lock=threading.Lock))
    trusted = TrustedHosts([ranked], clock=lambda: now[0])

    def look(at: float, content: str = "") -> int:
        if content:
            ranked.write_text(content)
        now[0] = at
        trusted.reason_of("any.example")
        return len(begun)

    assert look(4.9, "1,first.example\n") == 0
    assert look(5.0) == 1
    assert look(10.0, "1,second.example\n2,more.example\n") == 1, "the first reading has not ended"
    begun[0]["target"](*begun[0]["args"])
    assert trusted.reason_of("second.example")
    assert look(10.1) == 2, "what changed meanwhile is read again"
    begun[1]["target"](*begun[1]["args"])
    assert look(15.1) == 2
    assert look(20.0, "1,third.example\n") == 2
    assert look(20.1) == 3

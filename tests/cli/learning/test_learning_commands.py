"""`crawl`, `classify` and `words`: pages of a loopback server, and the words they are judged by."""

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.e2e.e2e_gateway import SiteServer

pytestmark = pytest.mark.slow

type Cli = Callable[..., Any]

GAMBLING = "Free spins at our online casino: slot machines, jackpot, roulette, blackjack, deposit now for a bonus code! "
CALM = "The garden in spring: how to sow beans, and when to water them. "


class _Site(BaseHTTPRequestHandler):
    pages: ClassVar[dict[str, str]] = {"/bad": GAMBLING, "/calm": CALM}

    def do_GET(self) -> None:
        text = self.pages.get(self.path)
        body = f"<!doctype html><html><head><title>Page</title></head><body><p>{text}</p></body></html>".encode() if text else b""
        self.send_response(200 if text else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch, state: Path) -> Iterator[str]:
    del state
    monkeypatch.setenv("GATEWAYFILTER_CRAWL__ALLOW_NETWORKS", "127.0.0.0/8")
    monkeypatch.setenv("GATEWAYFILTER_CRAWL__PER_HOST_DELAY_S", "0")
    with SiteServer(("127.0.0.1", 0), _Site) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_crawled_page_is_learned_shown_and_undone(cli: Cli, site: str) -> None:
    answer = cli("crawl", f"{site}/bad")
    assert answer.code == 1, answer.err
    assert "GAMBLING: score" in answer.out
    assert "casino" in answer.out
    checked = cli("check", f"{site}/bad", "--json")
    assert (checked.code, checked.json["verdict"]["source_list"]) == (1, "learned:gambling")
    assert checked.json["classification"]["classification"]["category"] == "gambling"
    assert [entry["url"] for entry in cli("list", "show", "--learned", "--json").json] == [f"{site}/bad"]
    cli("list", "add", "--allow", f"{site}/bad")
    assert cli("check", f"{site}/bad").code == 0


def test_several_pages_one_line_each(cli: Cli, site: str) -> None:
    answer = cli("crawl", f"{site}/calm", f"{site}/missing", "--json")
    lines = {line["url"]: line for line in answer.lines}  # as each is done
    calm, missing = lines[f"{site}/calm"], lines[f"{site}/missing"]
    assert (answer.code, calm["classification"]["category"], missing["status"]) == (2, "", 404)
    assert cli("crawl", f"{site}/calm").code == 0
    assert cli("check", f"{site}/calm", "--json").json["verdict"]["reason"] == "whitelist"


def test_a_crawl_task_follows_links_and_sums_up(cli: Cli, site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(_Site.pages, "/start", '<a href="/calm">calm</a> <a href="/bad">bad</a> <a href="/gone">gone</a>')
    monkeypatch.setenv("GATEWAYFILTER_CRAWL__TASKS", '{"look": {"depth": 1}}')
    answer = cli("crawl", "--task", "look", f"{site}/start")
    assert answer.code == 1
    assert "4 pages: 1 harmful, 1 not judged." in answer.err
    lines = cli("crawl", "--task", "look", f"{site}/start", "--json").lines
    assert {line["url"].removeprefix(site) for line in lines} == {"/start", "/calm", "/bad", "/gone"}
    assert cli("crawl", "--task", "lok", f"{site}/start").complains() == ("there is no crawl task 'lok'; did you mean 'look'?")
    assert "do not go together" in cli("crawl", "--task", "look", "--rule", "x", f"{site}/start").complains()


def test_what_may_not_be_crawled_is_said(cli: Cli) -> None:
    answer = cli("crawl", "http://127.0.0.1:9/")
    assert (answer.code, answer.out) == (2, "")
    assert "was refused: 127.0.0.1 is not a public address" in answer.err


def test_classify_fetches_and_learns_nothing(cli: Cli, site: str, state: Path) -> None:
    answer = cli("classify", f"{site}/bad")
    assert answer.code == 1
    assert "GAMBLING: score" in answer.out
    assert not state.exists()
    assert cli("classify", f"{site}/calm", "--json").json["category"] == ""
    assert "is not classified: status 404" in cli("classify", f"{site}/missing").complains()


def test_classify_reads_files_and_standard_input(cli: Cli, tmp_path: Path) -> None:
    page, text = tmp_path / "page.html", tmp_path / "page.txt"
    page.write_text(f"<html><title>Win</title><body>{GAMBLING}</body></html>")
    text.write_text(GAMBLING)
    judged = cli("classify", page, "--json")
    assert (judged.code, judged.json["category"], judged.json["title"]) == (1, "gambling", "Win")
    assert {"word", "category", "weight", "zone", "position"} == set(judged.json["evidence"][0])
    assert cli("classify", text).code == 1
    assert cli("classify", "-", stdin=GAMBLING).code == 1
    calm = cli("classify", "-", stdin=CALM)
    assert (calm.code, calm.out.startswith("HARMLESS")) == (0, True)
    assert cli("classify", "-", stdin=b"\xff\x00\xfe").code == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["classify", "/not/there"], "there is no file /not/there"),
        (["classify", "nofile.html"], "there is no file nofile.html"),
        (["classify", "a b"], "there is no file 'a b', and it is no URL either"),
        (["classify", "."], "cannot read .: Is a directory"),
        (["classify", "http://127.0.0.1:9/"], "was not fetched: 127.0.0.1 is not a public address"),
        (["crawl", "a b"], "not a URL"),
        (["words", "show", "odd"], "there is no word category 'odd'"),
        (["words", "add", "x", "--category", "Not A Name"], "a category's name is"),
        (["words", "add", "x", "--category", "gambing"], "did you mean 'gambling'? Otherwise --new-category makes it"),
        (["words", "add", "!!", "--category", "gambling"], "has no letter or digit"),
        (["words", "add", "x", "--category", "gambling", "--weight", "0"], "invalid value for '--weight'"),
        (["words", "add", "x", "--category", "gambling", "--context", "--exception"], "either context or an exception"),
        (["words", "add", "x"], "missing option '--category'"),
        (["words", "import", "not-there.txt", "--category", "gambling"], "cannot read not-there.txt"),
        (["words", "import", "{file}"], "name the category of the words"),
        (["words", "import", "{file}", "--category", "gambling"], "holds no usable word; line 1"),
        (["words", "import", "{toml}"], "unknown key 'categry'; did you mean 'category'?"),
        (["words", "export", "odd"], "there is no word category 'odd'"),
    ],
)
def test_bad_input_gets_one_sentence(arguments: list[str], sentence: str, cli: Cli, tmp_path: Path) -> None:
    file, toml = tmp_path / "words.txt", tmp_path / "words.toml"
    file.write_text("!!\n")
    toml.write_text("categry = 'x'\n")
    assert sentence in cli(*(argument.format(file=file, toml=toml) for argument in arguments)).complains()


def test_words_count_once_they_are_added_and_not_once_removed(cli: Cli) -> None:
    text = "zorgle and blurb and frobnicate"
    assert cli("words", "test", text).code == 0
    cli("words", "add", "--category", "nonsense", "--new-category", "zorgle", "blurb", "frobnicate", "--weight", "10")
    answer = cli("words", "test", text)
    assert (answer.code, "[zorgle] and [blurb] and [frobnicate]" in answer.out) == (1, True)
    assert cli("words", "test", "-", "--json", stdin=text).json["category"] == "nonsense"
    cli("words", "add", "--category", "nonsense", "--new-category", "zorgle", "--context", "--weight", "15")
    assert cli("words", "test", text).code == 0
    removed = cli("words", "remove", "--category", "nonsense", "zorgle", "never", "--json")
    assert (removed.code, removed.json) == (1, {"removed": 1, "missing": ["never"]})
    assert "has no phrase 'never'" in cli("words", "remove", "--category", "nonsense", "never").err


def test_bundled_words_can_be_removed(cli: Cli) -> None:
    words = cli("words", "show", "gambling", "--json").json["words"]
    word = next(item["phrase"] for item in words if item["kind"] == "word")
    assert cli("words", "remove", "--category", "gambling", word).code == 0
    assert word not in [item["phrase"] for item in cli("words", "show", "gambling", "--json").json["words"]]
    assert {"kind": "removed", "phrase": word, "weight": None} in cli("words", "show", "gambling", "--own", "--json").json[
        "words"
    ]


def test_words_are_shown(cli: Cli) -> None:
    assert "gambling" in cli("words", "show").out
    assert {"category", "words", "limit"} <= set(cli("words", "show", "--json").json[0])
    assert cli("words", "show", "gambling", "--own").out == "There are no own words of gambling.\n"
    cli("words", "add", "--category", "gambling", "lucky + wheel")
    cli("words", "add", "--category", "gambling", "bingo wings", "--exception")
    assert "lucky + wheel" in cli("words", "show", "gambling", "--own").out


def test_export_and_import_of_words_agree(cli: Cli, tmp_path: Path) -> None:
    cli("words", "add", "--category", "gambling", "zorgle", "zorgle + blurb")
    cli("words", "add", "--category", "gambling", "calm zorgle", "--context")
    cli("words", "add", "--category", "gambling", "zorgle wings", "--exception")
    file = tmp_path / "own.toml"
    file.write_text(cli("words", "export", "gambling", "--own").out)
    answer = cli("words", "import", file, "--category", "nonsense", "--new-category", "--json")
    assert (answer.json["category"], answer.json["read"], answer.json["changed"]) == ("nonsense", 4, 4)
    assert cli("words", "import", file, "--json").json["changed"] == 0
    both = [cli("words", "show", name, "--own", "--json").json["words"] for name in ("gambling", "nonsense")]
    assert both[0] == both[1]


def test_lists_of_others_are_imported(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "weighted"
    file.write_text('#listcategory: "Gambling"\n< casino games ><50>\n< poker >,< chips ><30>\n<!!><10>\n')
    answer = cli("words", "import", file, "--category", "gambling")
    assert answer.code == 0
    assert "2 phrases read, 2 of gambling new or changed" in answer.out
    assert f"{file}:4:" in answer.err

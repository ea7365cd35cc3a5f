"""What `crawl` shows while it works: on a real terminal, into a pipe, and nothing with `--json`."""

import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.cli.learning import crawl_progress
from gatewayfilter.cli.learning.crawl_progress import sentence_of, showing_crawl
from gatewayfilter.crawl import CrawlProgress

type Cli = Callable[..., Any]

_DRIVER = """
import sys
from gatewayfilter.cli.learning.crawl_progress import showing_crawl
from gatewayfilter.cli.ui.output import say
from gatewayfilter.crawl import CrawlProgress

with showing_crawl() as report:
    report(CrawlProgress(0, 2, 10, 0, 0, 0.1))
    say("https://a.example/ (status 200)")
    report(CrawlProgress(12, 0, 0, 3, 1, 2.0))
"""


def test_the_sentence() -> None:
    assert sentence_of(CrawlProgress(1200, 3, 40, 2, 1, 100.0)) == (
        "1,200 done · 3 running · 40 queued · 2 harmful · 1 error · 12.0 pages/s"
    )
    assert "0.0 pages/s" in sentence_of(CrawlProgress(0, 0, 0, 0, 2, 0.0))


def test_plain_lines_come_now_and_then(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crawl_progress, "EVERY_S", 5.0)
    with showing_crawl() as report:
        for elapsed_s in (0.5, 4.9, 5.0, 6.0, 9.9, 10.1):
            report(CrawlProgress(int(elapsed_s), 1, 1, 0, 0, elapsed_s))
    printed = capsys.readouterr()
    assert printed.out == ""
    assert [line.split(" ")[0] for line in printed.err.splitlines()] == ["5", "10"]


def test_quiet_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with showing_crawl(quiet=True) as report:
        report(CrawlProgress(1, 1, 1, 0, 0, 100.0))
    assert capsys.readouterr().err == ""


@pytest.mark.slow
@pytest.mark.parametrize("to_file", [False, True])
def test_a_terminal_has_one_living_line_and_results_are_whole(tmp_path: Path, *, to_file: bool) -> None:
    """Results go above the line on the same terminal, and unchanged into a file."""
    ours, theirs = pty.openpty()
    results = tmp_path / "results"
    with results.open("wb") as file:
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
        stdout = file if to_file else theirs
        child = subprocess.Popen([sys.executable, "-c", _DRIVER], stdout=stdout, stderr=theirs, env=environment)
    os.close(theirs)
    shown = b""
    while True:
        try:
            data = os.read(ours, 65_536)
        except OSError:  # Linux says so when the last writer has gone
            break
        if not data:
            break
        shown += data
    os.close(ours)
    assert child.wait(30) == 0
    screen = shown.decode()
    assert "2 running · 10 queued" in screen
    assert "12 done" in screen
    assert "3 harmful · 1 error · 6.0 pages/s" in screen
    assert "\x1b[2K" in screen  # the line is taken away again
    assert ("https://a.example/ (status 200)" in screen) is not to_file
    assert results.read_text() == ("https://a.example/ (status 200)\n" if to_file else "")

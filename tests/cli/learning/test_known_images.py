"""Images are known as bad by lists of MD5s, from the import to the verdict."""

from collections.abc import Callable, Iterator
from hashlib import md5
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.e2e_gateway import Origin

pytestmark = pytest.mark.slow

type Cli = Callable[..., Any]

BAD = b"GIF89a" + bytes(300)
GOOD = b"GIF89a" + bytes(301)


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch, state: Path) -> Iterator[str]:
    del state
    monkeypatch.setenv("GATEWAYFILTER_CRAWL__ALLOW_NETWORKS", "127.0.0.0/8")
    monkeypatch.setenv("GATEWAYFILTER_CRAWL__PER_HOST_DELAY_S", "0")
    origin = Origin({"/bad.gif": ("image/gif", BAD), "/good.gif": ("image/gif", GOOD)})
    yield origin.base
    origin.close()


def test_long_lists_are_taken_in_parts(cli: Cli, tmp_path: Path) -> None:
    digests = [md5(b"%d" % number, usedforsecurity=False).hexdigest() for number in range(1200)]
    known = tmp_path / "known.md5"
    known.write_text("\n".join([*digests, digests[0], digests[1199], "no digest", ""]), encoding="ascii")
    assert cli("fingerprints", "images", known, "--category", "adult").out == "1,202 images taken, 1 line rejected.\n"
    assert cli("fingerprints", "stats", "--json").json["image"] == 1200
    assert cli("fingerprints", "images", known, "--category", "fraud", "--json").json == {
        "taken": 1202,
        "rejected": 1,
        "samples": [[1203, "no digest"]],
    }


def test_a_known_image_is_blocked_and_no_other(cli: Cli, site: str, tmp_path: Path) -> None:
    known = tmp_path / "known.md5"
    known.write_text(f"{md5(BAD, usedforsecurity=False).hexdigest()}  something.gif\n", encoding="ascii")
    assert cli("fingerprints", "images", known, "--category", "adult").out == "1 image taken, 0 lines rejected.\n"
    assert cli("crawl", f"{site}/bad.gif").code == 1
    verdict = cli("check", f"{site}/bad.gif", "--json").json["verdict"]
    assert (verdict["reason"], verdict["source_list"]) == ("learned", "learned:adult")
    assert cli("crawl", f"{site}/good.gif").code == 2
    assert cli("check", f"{site}/good.gif", "--json").json["verdict"]["reason"] == "unknown"
    assert cli("review", "list").out == "No task waits.\n", "a list of known images needs no second look"

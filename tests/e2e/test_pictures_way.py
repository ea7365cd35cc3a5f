"""A picture on a list of known ones: found on a page that somebody visits, and blocked, with the processes that users run."""

import os
from hashlib import md5
from pathlib import Path

import pytest

from tests.e2e.conftest import GARDEN
from tests.e2e.e2e_gateway import GatewayProcess, Origin, until

BAD, GOOD = b"GIF89a" + bytes(300), b"GIF89a" + bytes(301)
HOOK = """
from gatewayfilter.model import Classification

class Long:
    def classify_image(self, body, content_type):
        return Classification("adult" if len(body) > 306 else "", 1.0, 0.5)
"""


@pytest.mark.slow
@pytest.mark.parametrize("passive", ["true", "false"])
def test_pictures_of_visited_pages_are_compared_with_the_list(state: Path, tmp_path: Path, passive: str) -> None:
    page = GARDEN.replace("<h1>", "<img src=bad.gif><img src=good.gif><h1>")
    origin = Origin({
        "/": ("text/html; charset=utf-8", page.encode()),
        "/bad.gif": ("image/gif", BAD),
        "/good.gif": ("image/gif", GOOD),
    })  # fmt: skip
    known = tmp_path / "known.md5"
    known.write_text(f"{md5(BAD, usedforsecurity=False).hexdigest()}\n", encoding="ascii")
    gateway = GatewayProcess(state, learn__passive=passive)
    assert gateway.cli("fingerprints", "images", str(known), "--category", "adult").returncode == 0
    try:
        with gateway:
            assert gateway.get(f"{origin.base}/").status == 200
            verdict = until(
                "blocked picture",
                lambda: (
                    found if (found := gateway.json("check", f"{origin.base}/bad.gif")["verdict"])["action"] != "allow" else None
                ),
            )
            assert (verdict["reason"], verdict["source_list"]) == ("learned", "learned:adult")
            assert gateway.get(f"{origin.base}/").status == 200
            assert gateway.get(f"{origin.base}/good.gif").status == 200
            assert gateway.stop() == 0
        assert gateway.json("fingerprints", "stats")["image_hits"] == 1, "hits are written before the learner ends"
    finally:
        origin.close()


@pytest.mark.slow
def test_an_image_classifier_is_plugged_in_by_name(state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "their_images.py").write_text(HOOK, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH", "")))))
    origin = Origin({"/long.gif": ("image/gif", GOOD), "/short.gif": ("image/gif", BAD)})
    try:
        gateway = GatewayProcess(state, learn__image_classifier="their_images:Long")
        assert gateway.cli("crawl", f"{origin.base}/long.gif").returncode == 1
        assert gateway.cli("crawl", f"{origin.base}/short.gif").returncode == 0
        assert [task["category"] for task in gateway.json("review", "list")] == ["adult"]
        wrong = GatewayProcess(state, learn__image_classifier="no_such_module:Long").cli("crawl", f"{origin.base}/long.gif")
        assert wrong.returncode == 2
        assert "learn.image_classifier 'no_such_module:Long' cannot be used" in wrong.stderr
        assert "Traceback" not in wrong.stderr
    finally:
        origin.close()

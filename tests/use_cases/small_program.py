"""A program that comes with few words and small lists, so that tests of words and subscriptions read little."""

import shutil
from pathlib import Path

import pytest

BUNDLED = Path(__file__).parents[2] / "lists"

WORDS = """category = "gambling"
limit = 20.0
short_share = 0.5
min_words = 2
exceptions = ["casino royale"]
[words]
10 = ["online casino", "free spins"]
3 = ["jackpot", "网上赌场"]
[context]
6 = ["gambling commission"]
[combinations]
8 = [["deposit", "bonus code"]]
[[near]]
name = "money put in"
weight = 4
one = ["top up"]
other = ["free bet"]
"""

CATALOGUE = """[bundles.home]
title = "Home"
title_zh = "家庭"
description = "Few."
description_zh = "少。"
lists = ["small-ads", "small-malware"]
[bundles.school]
title = "School"
title_zh = "学校"
description = "Fewer."
description_zh = "更少。"
lists = ["small-ads"]
"""
ENTRY = """[{name}]
title = "{title}"
address = "{address}"
licence = "MIT"
homepage = "https://lists.example/"
category = "{category}"
format = "hosts"
description = "x"
description_zh = "x"
interval_hours = 5
entries = 20
size_mb = 0.5
"""


def small_program(folder: Path, patch: pytest.MonkeyPatch, addresses: str = "http://127.0.0.1:9") -> Path:
    """Makes the folder of what comes with the program, and has it used; the catalogue's lists are below `addresses`."""
    for part in ("words", "starter"):
        (folder / part).mkdir(parents=True)
    for name in ("categories.toml", "services.toml", "user-content.txt"):
        shutil.copy(BUNDLED / name, folder)
    (folder / "words" / "gambling-en.toml").write_text(WORDS)
    shutil.copy(BUNDLED / "starter" / "test.txt", folder / "starter")
    entries = (("small-ads", "Small ads", "ads"), ("small-malware", "Small malware", "malware"))
    listed = [ENTRY.format(name=name, title=title, category=of, address=f"{addresses}/{name}") for name, title, of in entries]
    (folder / "catalog.toml").write_text("\n".join([CATALOGUE, *listed]))
    for module in ("wiring.storage", "wiring.classification", "sources.list_files"):
        patch.setattr(f"gatewayfilter.{module}.bundled_folder", lambda: folder)
    return folder

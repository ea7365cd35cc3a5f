"""What is looked at of a body that a policy may block by its content."""

import pytest

from gatewayfilter.engine.policies.download_rules import DownloadRules
from gatewayfilter.model import Verdict
from gatewayfilter.proxy.response.download_check import CheckedDownload
from gatewayfilter.urls import parse_url

EXE = b"MZ\x90\x00" + bytes(600)
RULES = DownloadRules("kids", types=frozenset({"exe"}), named=frozenset({"exe"}))


@pytest.mark.parametrize(
    ("place", "cut"),
    [
        ("", True),
        ("bytes 0-603/604", True),
        ("bytes 00-603/604", True),
        ("bytes 5000-5603/9000", False),  # a download that is resumed
        ("Bytes  5000-5603/*", False),
        ("octets 5000-5603/9000", True),  # what is no place is passed over by programs, which have a whole file then
        ("bytes=5000-5603/9000", True),
        ("bytes 5000-5603", True),
        ("bytes */9000", True),
        ("x", True),
    ],
)
def test_only_a_place_that_can_be_read_makes_a_later_part(place: str, *, cut: bool) -> None:
    blocks: list[Verdict] = []
    headers = {":status": "206", "content-type": "image/jpeg"} | ({"content-range": place} if place else {})
    check = CheckedDownload(RULES, parse_url("http://files.example/a"), headers, None, blocks.append)
    assert (check(EXE) == [], len(blocks)) == (cut, cut)

"""The file of the hosts that lists block: what lists of each kind give to it, what is left out, when it is written again."""

from pathlib import Path

import numpy as np

from gatewayfilter.integration.rpz import base_file
from gatewayfilter.integration.rpz.base_file import write_base
from gatewayfilter.model import ListAction, Source
from gatewayfilter.sources.formats.list_format import ListFormat
from gatewayfilter.sources.formats.parse import ListSink
from gatewayfilter.sources.subscription import SourceFile


def listed(folder: Path, name: str, text: str, kind: ListFormat = ListFormat.HOSTS, **of: str) -> SourceFile:
    path = folder / name
    path.write_text(text)
    action = ListAction(of.pop("action", ListAction.BLOCK))
    return SourceFile(Source(name, action, **of), path, kind)  # type: ignore[arg-type]


def test_lists_behind_those_that_are_left_out_are_read(tmp_path: Path) -> None:
    missing = SourceFile(Source("missing"), tmp_path / "nothing", ListFormat.HOSTS)
    allows = listed(tmp_path, "allows", "0.0.0.0 good.test\n", action=ListAction.ALLOW)
    off = listed(tmp_path, "off", "0.0.0.0 chat.test\n", category="social")
    files = [missing, allows, off, listed(tmp_path, "last", "0.0.0.0 a.test\n")]
    assert write_base(files, {"social"}, tmp_path / "names").names == 1
    assert (tmp_path / "names").read_text() == "test.a=\n"


def test_lists_that_have_changed_are_written_again(tmp_path: Path) -> None:
    folder, path = tmp_path / "made", tmp_path / "made" / "names"
    folder.mkdir()
    for text in ("0.0.0.0 a.test\n", "0.0.0.0 b.test\n", "0.0.0.0 b.test\n"):
        write_base([listed(tmp_path, "hosts", text)], (), path)
        assert path.read_text() == f"test.{text[8]}=\n"
        assert [one.name for one in folder.iterdir()] == ["names"]


def test_what_dns_cannot_say_is_counted_as_left_out(tmp_path: Path) -> None:
    lines = "[Adblock Plus 2.0]\n\n! title\n||x.test^\n||192.0.2.1^\n||y.test/page\nz.test##.ad\n"
    digests = "d41d8cd98f00b204e9800998ecf8427e\n0cc175b9c0f1b6a831c399e269772661\n"
    files = [
        listed(tmp_path, "adblock", lines, ListFormat.ADBLOCK),
        listed(tmp_path, "digests", digests, ListFormat.DIGESTS),
        listed(tmp_path, "urls", "http://a.test/page\n", ListFormat.URLS),
    ]
    counts = write_base(files, (), tmp_path / "names")
    assert (counts.names, counts.left_out) == (1, 2 + 2 + 1)


def test_the_names_of_lists_are_counted_as_the_interface_has_it() -> None:
    names = base_file._Names()
    sink: ListSink = names
    assert names.left_out == 0
    assert sink.add_keys(0, iter(["a.test", ".b.test", "c.test/page"])) == 3
    assert sink.add_digests(0, np.zeros((2, 16), np.uint8)) == 2
    assert sink.add_adblock_list(0, ["||d.test^"]).accepted == 0
    assert (names.hosts, names.domains, names.left_out) == ({"a.test"}, {"b.test", "d.test"}, 3)

"""Makers by MAC: each format of the registry that distributions have, and files that are none."""

from pathlib import Path

import pytest

from gatewayfilter.addresses.naming.mac_makers import has_table, makers_of

ONE, TWO, PRIVATE = "00:1a:2b:00:00:01", "3c:5a:b4:12:34:56", "06:00:00:00:00:01"
FORMATS = {
    "ieee": "OUI/MA-L\n\n00-1A-2B   (hex)\t\tMaker One, Inc.\n001A2B     (base 16)\t\tMaker One, Inc.\n3C-5A-B4   (hex)\t\tTwo\n",
    "nmap": "# comment\n001A2B Maker One, Inc.\n3C5AB4 Two\n",
    "hwdb": "OUI:001A2B*\n ID_OUI_FROM_DATABASE=Maker One, Inc.\n\nOUI:3C5AB4*\n ID_OUI_FROM_DATABASE=Two\n",
    "wireshark": "# comment\n00:1A:2B\tMakerOne\tMaker One, Inc.\n3C:5A:B4\tTwo\tTwo\n",
}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_read(tmp_path: Path, name: str) -> None:
    table = tmp_path / name
    table.write_text(FORMATS[name], encoding="utf-8")
    assert makers_of([ONE, TWO, "00:00:00:00:00:01"], [tmp_path / "none", table]) == {
        ONE: "Maker One, Inc.",
        TWO: "Two",
    }


def test_a_mac_of_the_devices_own_choice_has_no_maker(tmp_path: Path) -> None:
    assert makers_of([PRIVATE], [tmp_path / "none"]) == {PRIVATE: "private MAC"}


def test_without_a_table_nothing_is_known(tmp_path: Path) -> None:
    assert makers_of([ONE], [tmp_path / "none"]) == {}
    assert not has_table([tmp_path / "none"])
    assert not has_table([tmp_path])


def test_a_hostile_table_is_cut_and_cleaned(tmp_path: Path) -> None:
    table = tmp_path / "oui.txt"
    table.write_bytes(b"001A2B \x1b[31mbad\xff\x00" + b"x" * 1000 + b"\n\x00\xff\xfe\n(((\n")
    maker = makers_of([ONE], [table])[ONE]
    assert len(maker) == 60
    assert maker.isprintable()

"""How much a catalogue of services may hold, and which values it takes at their bounds."""

from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.config import bundled_folder
from gatewayfilter.errors import ListError
from gatewayfilter.sources import load_services, services
from gatewayfilter.sources.services import _service
from tests.case_tables import all_cases

HOSTS = ["mine.example"]


def made(**table: Any) -> Any:
    return _service("mine", {"hosts": HOSTS} | table)


def test_what_is_left_out_has_a_default() -> None:
    found = made()
    assert (found.service_id, found.name, found.name_zh, found.group) == ("mine", "mine", "mine", "other")
    assert (found.hosts, found.media, found.excepted, found.patterns, found.ports) == (("mine.example",), (), (), (), ())
    named = made(name=" Mine ", source="https://mine.example/", part_of="all")
    assert (named.name, named.name_zh, named.source, named.part_of) == ("Mine", "Mine", "https://mine.example/", "all")
    assert made(name="Mine", name_zh="我的").name_zh == "我的"
    assert _service("p", {"ports": [5222]}).hosts == ()
    assert _service("p", {"patterns": ["a*.cdn.example"]}).patterns == ("a*.cdn.example",)


@all_cases(
    ("table", "why"),
    [
        ({"hosts": []}, "has no hosts"),
        ({"hosts": [f"a{number}.example" for number in range(501)]}, "more than 500"),
        ({"hosts": "mine.example"}, "list of texts"),
        ({"hosts": [7]}, "list of texts"),
        ({"hosts": ["192.0.2.1"]}, "is an address"),
        ({"hosts": ["co.uk"]}, "public suffix"),
        ({"patterns": ["a*.cdn.example"] * 21}, "more than 20"),
        ({"patterns": ["a.cdn.example"]}, "one or two"),
        ({"patterns": ["a*b*c*.cdn.example"]}, "one or two"),
        ({"patterns": ["A*.cdn.example"]}, "lower case"),
        ({"patterns": ["a*.example"]}, "ends with a domain"),
        ({"patterns": ["*cdn.example"]}, "ends with a domain"),
        ({"ports": [0]}, "port 0"),
        ({"ports": [65_536]}, "port 65536"),
        ({"ports": [80]}, "port 80"),
        ({"ports": [443]}, "port 443"),
        ({"ports": [True]}, "port True"),
        ({"ports": ["22"]}, "port '22'"),
        ({"ports": [22] * 21}, "at most 20"),
        ({"ports": 22}, "at most 20"),
        ({"media": ["other.example"]}, "media: other.example"),
        ({"except": ["mine.example"]}, "except: mine.example"),
        ({"media": ["notmine.example"]}, "media: notmine.example"),
        ({"name": "x" * 201}, "at most 200"),
        ({"name": "a\nb"}, "visible"),
        ({"name": 7}, "is a text"),
        ({"group": "No Group"}, "group"),
        ({"colour": "red", "zeal": 1}, "unknown key 'colour'"),
    ],
)
def test_what_a_service_cannot_have(table: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        made(**table)


def test_what_it_can_have_at_most() -> None:
    most = [f"a{number}.example" for number in range(500)]
    assert len(made(hosts=most, media=most).media) == 500
    assert made(hosts=HOSTS * 2).hosts == ("mine.example",)
    assert made(media=HOSTS).media == ("mine.example",)
    assert made(**{"except": ["a.mine.example"]}).excepted == ("a.mine.example",)
    assert made(ports=[1, 65_535, *range(1000, 1018)]).ports[:2] == (1, 65_535)
    assert made(patterns=["a*b*.cdn.example"]).patterns == ("a*b*.cdn.example",)
    assert made(name="x" * 200).name == "x" * 200
    for name in ("a" * 40, "a"):
        assert _service(name, {"hosts": HOSTS}).service_id == name
    for name in ("a" * 41, "", "A"):
        with pytest.raises(ValueError, match="1 to 40"):
            _service(name, {"hosts": HOSTS})
    with pytest.raises(ValueError, match="not a table"):
        _service("mine", "x")


def test_a_file_is_bounded_in_bytes_and_services(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundled = bundled_folder() / "services.toml"
    own = tmp_path / "services.toml"
    line = '[{}]\nhosts=["a.example"]\n'
    count = len(load_services(bundled))
    monkeypatch.setattr(services, "_MOST_SERVICES", count + 1)
    own.write_text(line.format("a1"))
    assert len(load_services(bundled, own)) == count + 1
    own.write_text(line.format("a1") + line.format("a2"))
    with pytest.raises(ListError, match="more than"):
        load_services(bundled, own)
    assert len(load_services(own)) == 2
    monkeypatch.setattr(services, "_MOST_SERVICES", 2)
    assert len(load_services(own, own)) == 2
    own.write_text("".join(line.format(f"b{number}") for number in range(3)))
    with pytest.raises(ListError, match="more than 2 services"):
        load_services(own)
    size = own.stat().st_size
    monkeypatch.setattr(services, "_MOST_SERVICES", 3)
    monkeypatch.setattr(services, "_MOST_BYTES", size)
    assert len(load_services(own)) == 3
    monkeypatch.setattr(services, "_MOST_BYTES", size - 1)
    with pytest.raises(ListError, match="larger than"):
        load_services(own)
    monkeypatch.setattr(services, "_MOST_BYTES", 1_000_000)
    own.write_text('[p]\npart_of="q"\n' + line.format("a1").partition("\n")[2])
    with pytest.raises(ListError, match="part of 'q', which is no service"):
        load_services(own)
    with pytest.raises(ListError, match="cannot read"):
        load_services(tmp_path / "missing.toml")
    monkeypatch.setattr(services, "_MOST_SERVICES", count)
    assert load_services(bundled, tmp_path / "missing.toml").keys() == load_services(bundled).keys()

"""The catalogue of services: what it holds, and what a wrong file of the operator's own is refused for."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from gatewayfilter.config import bundled_folder
from gatewayfilter.engine.policies.service_index import ServiceIndex
from gatewayfilter.errors import ListError
from gatewayfilter.model import Service
from gatewayfilter.sources import load_services
from gatewayfilter.sources.service_icons import service_icon
from gatewayfilter.urls import canonical_host, host_suffixes, is_public_suffix
from tests.case_tables import all_cases

BUNDLED = bundled_folder() / "services.toml"
GROUPS = {"ai", "chat", "dating", "gambling", "games", "music", "news", "shopping", "social", "streaming", "video"}


@pytest.fixture(scope="module")
def catalogue() -> dict[str, Service]:
    return load_services(BUNDLED)


def test_the_catalogue_is_large_and_of_many_kinds(catalogue: dict[str, Service]) -> None:
    assert len(catalogue) >= 110
    assert {service.group for service in catalogue.values()} == GROUPS
    assert {"wechat", "qq", "douyin", "bilibili", "weibo", "taobao", "jd", "xiaohongshu", "iqiyi", "genshin"} <= catalogue.keys()
    assert all(service.name and service.name_zh and service.source.startswith("https://") for service in catalogue.values())


def test_hosts_are_canonical_and_no_public_suffix(catalogue: dict[str, Service]) -> None:
    for service in catalogue.values():
        assert service.hosts
        for host in service.hosts:
            assert canonical_host(host) == host
            assert not is_public_suffix(host)


def test_no_host_belongs_to_two_services_unless_one_is_part_of_the_other(catalogue: dict[str, Service]) -> None:
    owners = {host: name for name, service in catalogue.items() for host in service.hosts}
    assert len(owners) == sum(len(service.hosts) for service in catalogue.values())
    for host, name in owners.items():
        above = {owners[suffix] for suffix in host_suffixes(host)[1:] if suffix in owners}
        assert above <= {catalogue[name].part_of}, host
    for service in catalogue.values():
        assert not service.part_of or service.part_of in catalogue


def test_icons_are_small_drawings_of_their_own(catalogue: dict[str, Service]) -> None:
    icons = {name: service_icon(service) for name, service in catalogue.items()}
    assert len(set(icons.values())) == len(icons)
    for icon in icons.values():
        assert len(icon) < 1024
        assert ET.fromstring(icon).tag == "{http://www.w3.org/2000/svg}svg"


def test_an_icon_escapes_the_name() -> None:
    icon = service_icon(Service("x", '<"&>', "", "other", ("x.example",)))
    assert ET.fromstring(icon).attrib["aria-label"] == '<"&>'


@all_cases(
    ("name", "initials", "size"),
    [
        ("Microsoft Teams", "MT", 22),
        ("Apple TV plus", "AT", 22),
        ("tiktok", "TI", 22),
        ("X", "X", 28),
        ("(The) Site.de", "TS", 22),
        ("& other", "OT", 22),
        ("X-ray vision", "XV", 22),
        ("!!", "S", 28),
        ("抖音", "抖音", 22),
    ],
)
def test_an_icon_has_the_initials_of_the_first_two_words(name: str, initials: str, size: int) -> None:
    drawn = ET.fromstring(service_icon(Service("some-id", name, "", "other", ("x.example",))))
    (text,) = drawn.findall("{http://www.w3.org/2000/svg}text")
    assert (text.text, text.attrib["font-size"]) == (initials, str(size))
    (shape,) = drawn.findall("{http://www.w3.org/2000/svg}g")
    assert shape.attrib["fill"] == "hsl(108 55% 42%)", "a service keeps its colour"


def own(folder: Path, text: str) -> Path:
    path = folder / "services.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_an_own_catalogue_adds_and_replaces(tmp_path: Path) -> None:
    path = own(
        tmp_path,
        '[school-chat]\nname = "School chat"\ngroup = "chat"\nhosts = ["Chat.School.EXAMPLE.org"]\n'
        'patterns = ["chat-*.cdn.example.org"]\nports = [5222]\n[tiktok]\nhosts = ["tiktok.com"]\n',
    )
    found = load_services(BUNDLED, path)
    assert found["school-chat"].hosts == ("chat.school.example.org",)
    assert found["school-chat"].own
    assert found["tiktok"].hosts == ("tiktok.com",)
    assert found["tiktok"].name == found["tiktok"].name_zh == "tiktok"
    assert not found["youtube"].own
    assert load_services(BUNDLED, tmp_path / "none.toml") == load_services(BUNDLED)


WRONG = [
    ("x =", "is not TOML"),
    ("x = 1", "service 'x': not a table"),
    ("[x]\nhosts = []", "it has no hosts"),
    ("[x]\nhost = ['a.example']", "unknown key 'host'"),
    ("[x]\nhosts = 'a.example'", "hosts is a list of texts"),
    ("[x]\nhosts = [1]", "hosts is a list of texts"),
    ("[x]\nhosts = ['co.uk']", "'co.uk' is a public suffix"),
    ("[x]\nhosts = ['com']", "is a public suffix"),
    ("[x]\nhosts = ['192.0.2.1']", "is an address"),
    ("[x]\nhosts = ['a b']", "service 'x': "),
    ("['X Y']\nhosts = ['a.example']", "its name has"),
    ("[x]\nhosts = ['a.example']\nports = [443]", "port 443"),
    ("[x]\nhosts = ['a.example']\nports = [true]", "port True"),
    ("[x]\nhosts = ['a.example']\nports = [70000]", "port 70000"),
    ("[x]\nhosts = ['a.example']\nports = [80]", "port 80"),
    ("[x]\nhosts = ['a.example']\nports = [0]", "port 0"),
    ("[x]\nhosts = ['a.example']\nports = [65536]", "port 65536"),
    (f"[x]\nhosts = ['a.example']\nports = {[*range(1000, 1021)]}", "at most 20"),
    (f"[x]\nhosts = ['a.example']\nname = '{'a' * 201}'", "at most 200"),
    ("[x]\nhosts = ['a.example']\npatterns = ['abc.x.example']", "one or two *"),
    ("[x]\nhosts = ['a.example']\nmedia = ['b.example']", "media: b.example is not among"),
    ("[x]\nhosts = ['a.example']\nexcept = ['b.example']", "except: b.example is not among"),
    ("[x]\nhosts = ['a.example']\nexcept = ['a.example']", "except: a.example is not among"),
    ("[x]\nhosts = ['a.example']\npatterns = ['*.com']", "ends with a domain"),
    ("[x]\nhosts = ['a.example']\npatterns = ['a*b*c*d.x.example']", "one or two *"),
    ("[x]\nhosts = ['a.example']\npatterns = ['(a+)+*.x.example']", "one or two *"),
    ('[x]\nhosts = ["a.example"]\nname = "a\\u202eb"', "visible characters"),
    ("[x]\nhosts = ['a.example']\npart_of = 'none'", "is part of 'none'"),
    ("[x]\nhosts = ['a.example']\ngroup = 'A B'", "group 'A B'"),
    ("[x]\nhosts = [" + ",".join(f"'h{number}.example'" for number in range(501)) + "]", "more than 500 entries"),
    ("#" * 1_000_001, "is larger than"),
]


def test_what_is_taken_up_to_its_bounds(tmp_path: Path) -> None:
    ports = [1, 79, 81, 442, 444, 65_535, *range(1_000, 1_014)]
    hosts = [f"h{number}.example" for number in range(500)]
    text = f"[x]\nname = '{'a' * 200}'\nhosts = {hosts}\nmedia = ['h0.example', 'v.h1.example']\nexcept = ['i.h1.example']\n"
    found = load_services(own(tmp_path, f"{text}ports = {ports}\npatterns = ['*-a*.cdn.example']\n"))["x"]
    assert (found.ports, found.hosts, len(found.name)) == (tuple(ports), tuple(hosts), 200)
    assert (found.media, found.excepted, found.patterns) == (
        *(("h0.example", "v.h1.example"), ("i.h1.example",), ("*-a*.cdn.example",)),
    )


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_a_wrong_own_catalogue_is_refused_in_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    path = own(tmp_path, text)
    with pytest.raises(ListError, match=r".") as error:
        load_services(BUNDLED, path)
    assert message in str(error.value)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_parts_of_other_sites_are_no_part_of_a_service(tmp_path: Path) -> None:
    own = tmp_path / "services.toml"
    own.write_text("[pictures]\nhosts = ['pics.example']\nexcept = ['i.other.pics.example']\n", encoding="utf-8")
    index = ServiceIndex(load_services(own))
    hosts = ("pics.example", "i.pics.example", "other.pics.example", "i.other.pics.example", "x.i.other.pics.example")
    assert [index.of_host(host) for host in hosts] == [("pictures",)] * 3 + [()] * 2
    assert ServiceIndex(load_services(BUNDLED)).of_host("i.stack.imgur.com") == ()

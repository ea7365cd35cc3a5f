"""The services of a host and port: `gatewayfilter.engine.policies.service_index`."""

from gatewayfilter.engine.policies.service_index import NO_SERVICES, ServiceIndex
from gatewayfilter.model import Service
from gatewayfilter.urls import parse_url

CLIPS = Service(
    "clips", "", "", "video", ("clips.example", "cdn.example"), ("media.cdn.example",), excepted=("shop.clips.example",)
)
TUNES = Service(
    "tunes", "", "", "music", ("tunes.clips.example",), patterns=("tunes-*.cdn.example", "*.x.*"), ports=(7_000, 8_443)
)
BLOCKS = Service("blocks", "", "", "games", ("clips.example",), ports=(7_000,))
INDEX = ServiceIndex({one.service_id: one for one in (CLIPS, TUNES, BLOCKS)})


def test_the_services_of_a_host_the_nearest_first() -> None:
    for host, services in (
        ("clips.example", "clips blocks"), ("a.b.clips.example", "clips blocks"), ("xclips.example", ""), ("example", ""),
        ("tunes.clips.example", "tunes clips blocks"), ("a.tunes.clips.example", "tunes clips blocks"),
        ("shop.clips.example", "blocks"), ("a.shop.clips.example", "blocks"), ("xshop.clips.example", "clips blocks"),
        ("tunes-1.cdn.example", "clips tunes"), ("tunes-.cdn.example", "clips tunes"), ("tunes-1.a.cdn.example", "clips"),
        ("a.tunes-1.cdn.example", "clips"), ("a.x.b", "tunes"), ("a.x.b.c", ""), ("a.xx.b", ""), ("axb.c", ""),
    ):  # fmt: skip
        assert INDEX.of_host(host) == tuple(services.split()), host


def test_a_port_belongs_to_services_at_any_host() -> None:
    for url, services in (
        ("https://other.example:7000/", "tunes blocks"), ("https://other.example:8443/", "tunes"), ("https://other.example/", ""),
        ("https://other.example:70/", ""), ("https://clips.example:7000/", "clips blocks tunes"),
        ("https://tunes.clips.example:8443/", "tunes clips blocks"), ("https://shop.clips.example:7000/", "blocks tunes"),
    ):  # fmt: skip
        assert INDEX.of(parse_url(url)) == tuple(services.split()), url


def test_who_sends_what_is_played() -> None:
    for host, services in (("media.cdn.example", ("clips",)), ("a.media.cdn.example", ("clips",)), ("cdn.example", ())):
        assert INDEX.media_of(host) == services


def test_an_empty_catalogue_has_no_services() -> None:
    assert (bool(INDEX), bool(NO_SERVICES)) == (True, False)
    assert NO_SERVICES.of(parse_url("https://clips.example:7000/")) == NO_SERVICES.media_of("media.cdn.example") == ()

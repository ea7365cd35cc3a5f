"""The filter's own pages: what they answer for, what they say, what they give out."""

import plistlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import pkcs12

from gatewayfilter.certificates.authority import CertificateAuthority, ensure_ca
from gatewayfilter.certificates.renewal import activate_next, make_next, next_authority
from gatewayfilter.config import Settings
from gatewayfilter.interfaces import InternalAnswer, InternalRequest
from gatewayfilter.proxy.pages import setup_pages
from gatewayfilter.proxy.pages.setup_pages import SetupPages
from gatewayfilter.proxy.pages.setup_translations import CHINESE, ENGLISH, GatewayFacts
from gatewayfilter.urls import parse_url

IPHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return ensure_ca(tmp_path_factory.mktemp("authority") / "ca")


def pages(
    authority: CertificateAuthority,
    facts: GatewayFacts | None = None,
    coming: Callable[[], CertificateAuthority | None] = lambda: None,
    **sections: Any,
) -> SetupPages:
    proxy = {"listen": "0.0.0.0:8080", **sections.pop("proxy", {})}
    settings = Settings.model_validate({"data_dir": Path("/nowhere"), "proxy": proxy, **sections})
    made = SetupPages(settings, authority, lambda at: f"pac for {at}", lambda: facts or GatewayFacts(), coming, lambda: (3, 11))
    made.refresh()
    return made


def get(made: SetupPages, url: str = "http://gatewayfilter.internal/", **headers: str) -> InternalAnswer:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return made.respond(InternalRequest(parse_url(url), headers=names, client="192.168.1.9", local=("192.168.1.1", 8080)))


@pytest.mark.parametrize(
    ("url", "ours"),
    [
        ("http://gatewayfilter.internal/", True),
        ("https://GatewayFilter.internal/trusted.svg", True),
        ("http://192.0.2.80/", True),
        ("https://[2001:db8::80]/trusted.svg", True),
        ("http://127.0.0.1:8080/proxy.pac", True),
        ("http://[::1]:8080/", True),
        ("http://gatewayfilter.internal.example/", False),
        ("http://sub.gatewayfilter.internal/", False),
        ("http://127.0.0.1/", False),  # a page of the machine itself
        ("http://127.0.0.1:8081/", False),
        ("http://192.0.2.1:8080/", False),  # somebody else's port
        ("http://example.com:8080/", False),
        ("http://wpad/wpad.dat", False),
        ("http://0.0.0.0:8080/", False),
        ("http://[::]:8080/", False),
        ("http://localhost:8080/", False),  # a name that an origin may have, too
    ],
)
def test_which_addresses_are_ours(authority: CertificateAuthority, url: str, *, ours: bool) -> None:
    assert pages(authority).answers(parse_url(url)) is ours


@pytest.mark.parametrize(
    ("url", "ours"),
    [
        ("http://wpad/wpad.dat", True),
        ("http://wpad.lan/wpad.dat", True),
        ("http://wpad.lan/index.html", False),
        ("http://wpadx.lan/wpad.dat", False),
        ("http://127.0.0.1/", True),
        ("https://127.0.0.1/", False),
    ],
)
def test_port_80_is_ours_on_request(authority: CertificateAuthority, url: str, *, ours: bool) -> None:
    assert pages(authority, gateway={"own_port_80": True}).answers(parse_url(url)) is ours


def test_a_proxy_at_port_80_has_its_pages_there(authority: CertificateAuthority) -> None:
    made = pages(authority, proxy={"listen": "0.0.0.0:80"})
    for url, ours in (("http://127.0.0.1/", True), ("http://127.0.0.1:80/", True), ("http://127.0.0.1:81/", False)):
        assert made.answers(parse_url(url)) is ours


def test_without_hosts_nothing_is_checked(authority: CertificateAuthority) -> None:
    answer = get(pages(authority, gateway={"hosts": []}), "http://192.168.1.1:8080/")
    assert "object-src 'none'; frame-src 'none'" in answer.headers["content-security-policy"]
    assert "<object" not in answer.content.decode()


@pytest.mark.parametrize(
    ("languages", "title"),
    [("en", "Set up this device"), ("zh-CN,en;q=0.5", "设置此设备"), ("fr", "Set up this device"), ("", "Set up")],
)
def test_the_page_speaks_the_readers_language(authority: CertificateAuthority, languages: str, title: str) -> None:
    answer = get(pages(authority), accept_language=languages)
    assert answer.status == 200
    assert f"<h1>{title}" in answer.content.decode()
    other = get(pages(authority), "http://gatewayfilter.internal/?lang=zh", accept_language="en").content.decode()
    assert '<html lang="zh-Hans">' in other


def test_both_languages_have_the_same_words_and_systems() -> None:
    assert ENGLISH.words.keys() == CHINESE.words.keys()
    assert ENGLISH.systems.keys() == CHINESE.systems.keys()
    for name, found in ENGLISH.systems.items():
        kinds = [[next(iter(step)) for step in texts.systems[name]["steps"]] for texts in (ENGLISH, CHINESE)]
        assert kinds[0] == kinds[1], name
        commands = [[step["code"] for step in texts["steps"] if "code" in step] for texts in (found, CHINESE.systems[name])]
        assert commands[0] == commands[1], name


def test_the_page_runs_nothing_and_loads_only_its_own_pictures(authority: CertificateAuthority) -> None:
    answer = get(pages(authority))
    text, policy = answer.content.decode(), answer.headers["content-security-policy"]
    assert "<script" not in text
    assert not re.search(r"<[^>]*\son[a-z]+\s*=", text)
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "script-src" not in policy
    assert set(re.findall(r'(?:src|data)="([^"]*)"', text)) == {
        "/qr.svg",
        "https://gatewayfilter.internal/trusted.svg?lang=en",
    }
    assert "object-src http://gatewayfilter.internal https://gatewayfilter.internal" in policy


def test_the_check_follows_the_way_on_which_the_page_was_reached(authority: CertificateAuthority) -> None:
    direct = get(pages(authority), "http://192.168.1.1:8080/").content.decode()
    assert 'data="http://gatewayfilter.internal/through.svg?lang=en"' in direct  # loads only when the proxy is set
    transparent = get(pages(authority, proxy={"mode": "transparent"}), "http://192.0.2.80/").content.decode()
    assert 'data="https://192.0.2.80/trusted.svg?lang=en"' in transparent
    assert "proxy.pac" not in transparent
    secure = get(pages(authority), "https://gatewayfilter.internal/").content.decode()
    assert "<object" not in secure
    assert secure.count("✓ Yes") == 2


def test_the_picture_of_trust_comes_by_https_alone(authority: CertificateAuthority) -> None:
    made = pages(authority)
    assert get(made, "https://gatewayfilter.internal/trusted.svg").status == 200
    picture = get(made, "https://gatewayfilter.internal/trusted.svg").content
    assert b" width=" not in picture  # browsers would not shrink it on a phone
    assert get(made, "http://gatewayfilter.internal/trusted.svg").status == 404


@pytest.mark.parametrize(
    ("path", "content_type"),
    [
        ("/ca.cer", "application/x-x509-ca-cert"),
        ("/ca.crt", "application/x-x509-ca-cert"),
        ("/ca.pem", "application/x-pem-file"),
        ("/ca.p12", "application/x-pkcs12"),
        ("/ca.mobileconfig", "application/x-apple-aspen-config"),
    ],
)
def test_the_certificate_is_given_out_and_never_the_key(authority: CertificateAuthority, path: str, content_type: str) -> None:
    answer = get(pages(authority), f"http://gatewayfilter.internal{path}")
    assert (answer.status, answer.headers["content-type"]) == (200, content_type)
    assert b"PRIVATE" not in answer.content
    assert answer.headers["content-disposition"] == f'inline; filename="gatewayfilter-{path[1:]}"'
    if path == "/ca.cer":
        certificate = x509.load_der_x509_certificate(answer.content)
    elif path == "/ca.p12":
        found = pkcs12.load_pkcs12(answer.content, None)
        assert (found.key, len(found.additional_certs)) == (None, 1)
        certificate = found.additional_certs[0].certificate
    elif path == "/ca.mobileconfig":
        (payload,) = plistlib.loads(answer.content)["PayloadContent"]
        assert payload["PayloadType"] == "com.apple.security.root"
        certificate = x509.load_der_x509_certificate(payload["PayloadContent"])
    else:
        certificate = x509.load_pem_x509_certificate(answer.content)
    assert certificate == authority.certificate


@pytest.mark.parametrize("path", ["/proxy.pac", "/wpad.dat", "/wpad.da"])
def test_pac_and_wpad_name_the_address_that_the_device_reached(authority: CertificateAuthority, path: str) -> None:
    answer = get(pages(authority), f"http://192.168.1.1:8080{path}")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/x-ns-proxy-autoconfig")
    assert answer.content == b"pac for 192.168.1.1:8080"
    assert get(pages(authority, proxy={"mode": "transparent"}), f"http://192.0.2.80{path}").content == b"pac for "


def test_the_system_of_the_device_stands_open(authority: CertificateAuthority) -> None:
    text = get(pages(authority), user_agent=IPHONE).content.decode()
    assert re.findall(r"<details open[^>]*><summary>([^<]*)", text) == ["iPhone and iPad "]
    assert "<details open" not in get(pages(authority)).content.decode()


@pytest.mark.parametrize(
    ("mode", "facts", "words"),
    [
        ("transparent", GatewayFacts(up=True, quic_refused=True), "The gateway refuses it; browsers turn"),
        ("transparent", GatewayFacts(up=True), "does not refuse it"),
        ("transparent", GatewayFacts(quic_refused=True), "does not refuse it"),
        ("regular", GatewayFacts(), "Other apps may"),
        ("regular", GatewayFacts(up=True, quic_refused=True), "refuses it to other apps"),
        ("transparent", GatewayFacts(), "blocks 3 of 11 well-known servers"),
        ("regular", GatewayFacts(), "the filter looks names up itself"),
    ],
)
def test_what_is_known_of_ways_around_is_told(
    authority: CertificateAuthority, mode: str, facts: GatewayFacts, words: str
) -> None:
    assert words in get(pages(authority, facts, proxy={"mode": mode})).content.decode()


def test_other_paths_and_methods_are_refused(authority: CertificateAuthority) -> None:
    made = pages(authority)
    assert get(made, "http://gatewayfilter.internal/../ca/mitmproxy-ca.pem").status == 404
    posted = made.respond(InternalRequest(parse_url("http://gatewayfilter.internal/"), method="POST"))
    assert (posted.status, posted.headers["allow"]) == (405, "GET, HEAD")


def test_the_next_authority_is_handed_out_while_it_waits(tmp_path: Path) -> None:
    folder = tmp_path / "ca"
    made = pages(ensure_ca(folder), coming=lambda: next_authority(folder))
    assert "next certificate" not in get(made).content.decode()
    assert get(made, "http://gatewayfilter.internal/next-ca.cer").status == 404
    waiting = make_next(folder)
    made.refresh()
    assert waiting.fingerprint in get(made).content.decode()
    answer = get(made, "http://gatewayfilter.internal/next-ca.cer")
    assert x509.load_der_x509_certificate(answer.content) == waiting.certificate
    assert 'filename="next-gatewayfilter-ca.cer"' in answer.headers["content-disposition"]
    assert get(made, "http://gatewayfilter.internal/ca.cer").content != answer.content
    kept = waiting.path.read_bytes()
    waiting.path.write_bytes(b"damaged")
    made.refresh()
    assert get(made).status == 200
    assert get(made, "http://gatewayfilter.internal/next-ca.cer").status == 404
    waiting.path.write_bytes(kept)
    activate_next(folder)
    made.refresh()
    assert get(made, "http://gatewayfilter.internal/next-ca.cer").status == 404


@pytest.mark.parametrize(
    ("listen", "local", "near", "shown"),
    [
        ("127.0.0.1:8080", "127.0.0.1", "192.168.7.1", "gatewayfilter run --listen 192.168.7.1:8080"),
        ("127.0.0.1:8080", "127.0.0.1", "", "gatewayfilter run --listen ADDRESS:8080"),
        ("[::1]:8080", "::1", "192.168.7.1", "gatewayfilter run --listen 192.168.7.1:8080"),
        ("localhost:8080", "127.0.0.1", "192.168.7.1", "gatewayfilter run --listen 192.168.7.1:8080"),
        ("0.0.0.0:8080", "127.0.0.1", "192.168.7.1", "<code>http://192.168.7.1:8080/</code>"),
        ("192.168.1.1:8080", "192.168.1.1", "192.168.7.1", "<code>http://192.168.1.1:8080/</code>"),
    ],
)
def test_other_devices_get_an_address_that_they_reach(
    authority: CertificateAuthority, listen: str, local: str, near: str, shown: str
) -> None:
    settings = Settings.model_validate({"data_dir": Path("/nowhere"), "proxy": {"listen": listen}})
    made = SetupPages(settings, authority, lambda at: at, address_on_lan=lambda: near)
    made.refresh()
    for language, local_only in (("en", "This machine only"), ("zh", "目前仅限本机")):
        request = InternalRequest(
            parse_url(f"http://gatewayfilter.internal/?lang={language}"), headers={}, client=local, local=(local, 8080)
        )
        page = made.respond(request).content.decode()
        assert shown in page
        assert (local_only in page) is ("run --listen" in shown)
        assert ("/qr.svg" in page) is not (local_only in page)


def test_the_address_of_the_page_is_drawn_for_cameras() -> None:
    drawn = ET.fromstring(setup_pages._qr("http://192.0.2.1:8080/"))
    assert drawn.tag == "{http://www.w3.org/2000/svg}svg"
    assert [title.text for title in drawn.iter("{http://www.w3.org/2000/svg}title")] == ["http://192.0.2.1:8080/"]


@pytest.mark.parametrize(
    ("mode", "local", "here", "shown"),
    [
        ("transparent", "192.168.1.1", "http://gatewayfilter.internal", "http://192.0.2.80/"),
        ("regular", "192.168.1.1", "http://gatewayfilter.internal", "http://192.168.1.1:8080/"),
        ("regular", "2001:db8::9", "http://gatewayfilter.internal", "http://[2001:db8::9]:8080/"),
        ("regular", "", "http://[2001:db8::9]:8080", "http://[2001:db8::9]:8080/"),
    ],
)
def test_the_drawn_address_is_the_one_that_others_reach(
    authority: CertificateAuthority, mode: str, local: str, here: str, shown: str
) -> None:
    made = pages(authority, proxy={"mode": mode})
    answer = made.respond(InternalRequest(parse_url(f"{here}/qr.svg"), headers={}, client="192.168.1.9", local=(local, 8080)))
    assert (answer.status, answer.headers["content-type"]) == (200, "image/svg+xml")
    assert [title.text for title in ET.fromstring(answer.content).iter("{http://www.w3.org/2000/svg}title")] == [shown]
    pac = made.respond(InternalRequest(parse_url(f"{here}/proxy.pac"), headers={}, client="192.168.1.9", local=(local, 8080)))
    assert pac.content.decode() == f"pac for {'' if mode == 'transparent' else shown.removeprefix('http://').rstrip('/')}"


@pytest.mark.parametrize(("language", "texts"), [("en", ENGLISH), ("zh", CHINESE)])
def test_pictures_tell_in_the_language_of_the_page(authority: CertificateAuthority, language: str, texts: Any) -> None:
    made = pages(authority)
    for name, scheme in (("through", "http"), ("through", "https"), ("trusted", "https")):
        answer = get(made, f"{scheme}://gatewayfilter.internal/{name}.svg?x=1&lang={language}")
        assert answer.status == 200
        drawn = ET.fromstring(answer.content)
        assert [title.text for title in drawn.iter("{http://www.w3.org/2000/svg}title")] == [texts.words[f"{name}_yes"]]
        assert answer.headers["access-control-allow-origin"] == "*"
    missing = get(made, f"http://gatewayfilter.internal/none?lang={language}")
    assert (missing.status, missing.content.decode()) == (404, f"{texts.words['not_here']}\n")
    assert missing.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("agent", "system"),
    [
        ("Mozilla/5.0 (iPad; CPU OS 18_0 like Mac OS X)", "ios"),
        ("Mozilla/5.0 (Linux; Android 15) Firefox/1", "android"),
        ("Mozilla/5.0 (Windows NT 10.0) Firefox/140.0", "firefox"),
        ("Mozilla/5.0 (Windows NT 10.0)", "windows"),
        ("Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)", "macos"),
        ("Mozilla/5.0 (X11; CrOS x86_64)", "chromeos"),
        ("Mozilla/5.0 (X11; Linux x86_64)", "linux"),
        ("curl/8.0", ""),
    ],
)
def test_which_system_a_device_has(agent: str, system: str) -> None:
    assert setup_pages._system(agent) == system


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("localhost", True), ("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("192.168.1.1", False), ("a.example", False)],
)
def test_which_addresses_are_of_this_machine_alone(host: str, *, loopback: bool) -> None:
    assert setup_pages._is_loopback(host) is loopback

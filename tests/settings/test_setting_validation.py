"""Which values of settings are accepted, up to their bounds, and what is derived of them."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from gatewayfilter.errors import ConfigError
from gatewayfilter.settings import (
    CosmeticScope,
    DecideSettings,
    FilterSettings,
    FleetSettings,
    GatewaySettings,
    GrowthMode,
    HelperSettings,
    KafkaSettings,
    LearnSettings,
    LogSettings,
    MetricsSettings,
    NotifySettings,
    OidcSettings,
    ProxySettings,
    QueueSettings,
    RpzSettings,
    Section,
    Settings,
    WebSettings,
    WebTls,
    bundled_folder,
    default_data_dir,
)
from gatewayfilter.settings.renamed import GivenSetting, current_settings

ACCEPTED: list[tuple[type[Section], dict[str, Any]]] = [
    (OidcSettings, {"issuer": "https://id.example", "client_id": "f"}),
    (OidcSettings, {"issuer": "https://id.example:8443/realms/x", "client_id": "f"}),
    (OidcSettings, {"issuer": "http://localhost:5556", "client_id": "f"}),
    (OidcSettings, {"issuer": "http://127.0.0.9/", "client_id": "f"}),
    (OidcSettings, {"issuer": "http://[::1]:80", "client_id": "f"}),
    (OidcSettings, {"issuer": "https://id.example/" + "a" * 1_981, "client_id": "f"}),
    (OidcSettings, {"base_url": "http://filter.lan:8081/"}),
    (OidcSettings, {"scopes": ()}),
    (OidcSettings, {"scopes": ("profile", "a:b/c")}),
    (OidcSettings, {"client_secret": "s"}),
    (OidcSettings, {"client_secret_file": Path("secret")}),
    (OidcSettings, {"new_accounts": True, "viewer_values": ("a",)}),
    (OidcSettings, {"new_accounts": True, "approver_values": ("a",)}),
    (OidcSettings, {"name": "a" * 40}),
    (WebSettings, {"names": ("a", "filter.lan", "a" + "-" * 251 + "b")}),
    (WebSettings, {"certificate": Path("a"), "key": Path("b")}),
    (WebSettings, {"listen": ""}),
    (WebSettings, {"session_hours": 720}),
    (KafkaSettings, {"brokers": "a:1,[::1]:65535", "decisions": "a" * 249}),
    (KafkaSettings, {"brokers": "a:9092", "decisions": "a.b_c-1"}),
    (KafkaSettings, {"brokers": ",".join(["abcdefghi:12345"] * 128)}),  # 2,047 characters
    (QueueSettings, {"url": ""}),
    (QueueSettings, {"url": "redis://a:65535/999"}),
    (QueueSettings, {"url": "redis://a:1/"}),
    (QueueSettings, {"url": "redis-cluster://a,b:1,[::1]:2"}),
    (QueueSettings, {"url": "redis://" + "a" * 2_040}),
    (NotifySettings, {"base_url": "https://filter.lan", "webhook_url": "http://a/b?c"}),
    (NotifySettings, {"mail_from": "me@example.com", "mail_to": ("a@b", "a.b+c@d.org")}),
    (MetricsSettings, {"otlp": "http://127.0.0.1:4318/v1", "trace_share": 1.0}),
    (MetricsSettings, {"otlp": "https://collector"}),
    (FleetSettings, {"follow": "https://filter.example:8443/", "key": "k"}),
    (FleetSettings, {"listen": "0.0.0.0:8443", "certificate": Path("a"), "certificate_key": Path("b")}),
    (DecideSettings, {"listen": "127.0.0.1:8082"}),
    (DecideSettings, {"listen": "[::1]:8082"}),
    (DecideSettings, {"listen": "0.0.0.0:8082", "token": "t"}),
    (DecideSettings, {"listen": "0.0.0.0:8082", "token_file": Path("t")}),
    (RpzSettings, {"zone": "A.b-c._d.", "notify": ("127.0.0.1:53", "[::1]:53")}),
    (RpzSettings, {"tsig_name": "n", "tsig_secret": "c2VjcmV0"}),
    (RpzSettings, {"tsig_name": "n", "tsig_file": Path("f")}),
    (RpzSettings, {"file": Path("f"), "reload": ("rndc", "reload")}),
    (RpzSettings, {"zone": "a" * 63 + "." + "b" * 36}),
    (RpzSettings, {"zone": "a." + "b" * 63}),
    (HelperSettings, {"socket": "/" + "a" * 99, "block_url": "https://filter.example/blocked?x"}),
    (ProxySettings, {"stall_s": 3}),
    (ProxySettings, {"stall_s": 0}),
    (ProxySettings, {"mode": "upstream:https://a:1"}),
    (ProxySettings, {"mode": "upstream:http://a:1"}),
    (ProxySettings, {"mode": "transparent"}),
    (LogSettings, {"ignored_clients": ("10.0.0.2", "10.0.0.0/8", "user:anna")}),
    (GatewaySettings, {"pac_bypass": ("*.a.example", ".b.example", "c.example", "10.0.0.0/8"), "ports": (1, 65_535)}),
    (FilterSettings, {"timezone": "Europe/Berlin"}),
    (FilterSettings, {"timezone": ""}),
]
REFUSED: list[tuple[type[Section], dict[str, Any], str]] = [
    *((OidcSettings, {"issuer": issuer, "client_id": "f"}, "begins with https") for issuer in (
        "http://id.example", "http://10.0.0.1", "ftp://localhost", "https://", "https://a@id.example", "https://id.example/a b",
        "https://id.example/ü", "https://id.example/\t", "https://id.example:x", "https://id.example?a", "https://id.example/#a",
        "https://id.example/" + "a" * 1_982,
    )),
    *((OidcSettings, {"base_url": base}, "without a path") for base in (
        "filter.lan", "ftp://filter.lan", "https://", "https://a/b", "https://a@b", "https://a?b", "https://a/#b", "https://a b",
    )),
    *((OidcSettings, {"scopes": ("profile", scope)}, "names of scopes") for scope in ("", "a b", 'a"b', "a\\b", "ü")),
    (OidcSettings, {"issuer": "https://id.example"}, "needs a client_id"),
    (OidcSettings, {"client_secret": "s", "client_secret_file": Path("f")}, "exclude each other"),
    (OidcSettings, {"new_accounts": True}, "new_accounts needs"),
    (OidcSettings, {"name": "a" * 41}, "at most 40"),
    *((WebSettings, {"names": (name,)}, "must be host names") for name in ("", "A", "a:1", "-a", "a-", "a" * 254, "a_b")),
    (WebSettings, {"certificate": Path("a")}, "belong together"),
    (WebSettings, {"key": Path("a")}, "belong together"),
    (WebSettings, {"listen": "localhost"}, "HOST:PORT"),
    (WebSettings, {"session_hours": 0}, "greater than or equal to 1"),
    (WebSettings, {"session_hours": 721}, "less than or equal to 720"),
    *((KafkaSettings, {"brokers": brokers}, "must be HOST:PORT") for brokers in (
        "a", "a:", "a:0", "a:65536", ":1", "a:1,", "a b:1", "a/b:1", "u@a:1", "ü:1", "a:x", ",".join(["abcdefghi:12345"] * 129),
    )),
    *((KafkaSettings, {"brokers": "a:1", "decisions": topic}, "topic of Kafka") for topic in (".", "..", "a" * 250, "a b", "ü")),
    (KafkaSettings, {"decisions": "a"}, "needs kafka.brokers"),
    *((QueueSettings, {"url": url}, "must be redis://") for url in (
        "redis://a:0", "redis://a:65536", "redis://a/1000", "redis://a/x", "redis://a#b", "redis://a\t", "redis://ü", "http://a",
        "redis-cluster://a,", "redis://a?b=c", "redis://[a", "redis://" + "a" * 2_041,
    )),
    *((NotifySettings, {key: url}, "begins with http") for key in ("base_url", "webhook_url", "ntfy_url") for url in (
        "ftp://a", "http://", "http://a b", "http://a/\x00",
    )),
    *((NotifySettings, {"mail_from": text}, "must be a mail address") for text in (
        "a", "@b", "a@", "a b@c", "a,b@c", "<a@b>", "a;b@c", "ü@b", "a\x00@b", '"a"@b', "[a]@b", "(a)@b", "a\\b@c",
    )),
    (NotifySettings, {"mail_to": ("a@b", "b")}, "must be mail addresses"),
    *((MetricsSettings, {"otlp": url}, "not a URL|[Pp]ort") for url in (
        "a:1", "http://", "http://u@a", "http://a?b", "http://a:x", "http://a:65536",
    )),
    (MetricsSettings, {"trace_share": 0.5}, "needs metrics.otlp"),
    *((FleetSettings, {"follow": url, "key": "k"}, "must be an address with https") for url in (
        "http://a", "https://u@a", "https://a?b", "https://a#b",
    )),
    (FleetSettings, {"follow": "https://a"}, "needs fleet.key"),
    (FleetSettings, {"follow": "https://a", "key": "k", "listen": "127.0.0.1:1"}, "exclude each other"),
    (FleetSettings, {"certificate": Path("a")}, "belong together"),
    (FleetSettings, {"certificate_key": Path("a")}, "belong together"),
    (DecideSettings, {"listen": "0.0.0.0:8082"}, "beyond loopback"),
    *((RpzSettings, {"zone": zone}, "no name of a zone") for zone in (
        "", ".", "a..b", "-a", "ü", "a" * 64, "b." + "a" * 64, "a" * 63 + "." + "b" * 37,
    )),
    (RpzSettings, {"notify": ("127.0.0.1",)}, "HOST:PORT"),
    (RpzSettings, {"tsig_name": "n"}, "belong together"),
    (RpzSettings, {"tsig_secret": "c2VjcmV0"}, "belong together"),
    (RpzSettings, {"tsig_file": Path("f")}, "belong together"),
    (RpzSettings, {"tsig_name": "n", "tsig_secret": "c2V!jcmV0"}, "base64"),
    (RpzSettings, {"reload": ("rndc",)}, "needs rpz.file"),
    (HelperSettings, {"socket": "/" + "a" * 100}, "absolute path of at most 100"),
    (HelperSettings, {"socket": "a"}, "absolute path"),
    *((HelperSettings, {"block_url": url}, "must be an address") for url in ("filter.example", "http://a b", 'http://a"', "http://a\\b")),
    (ProxySettings, {"stall_s": 2.9}, "0 or at least 3"),
    (ProxySettings, {"listen": ""}, "HOST:PORT"),
    *((ProxySettings, {"mode": mode}, "must be regular") for mode in ("", "reverse", "upstream:", "upstream:ftp://a")),
    (LogSettings, {"ignored_clients": ("aa:bb:cc:dd:ee:ff",)}, "user:NAME, not"),
    (LogSettings, {"ignored_clients": ("nobody",)}, "nobody"),
    (GatewaySettings, {"pac_bypass": ("10.0.0.1/8",)}, "host bits"),
    (GatewaySettings, {"ports": (0,)}, "greater than or equal to 1"),
    (FilterSettings, {"timezone": "Europe/Nowhere"}, "name of a time zone"),
    (FilterSettings, {"timezone": "/etc/passwd"}, "name of a time zone"),
]  # fmt: skip


@pytest.mark.parametrize(("section", "values"), ACCEPTED)
def test_accepted(section: type[Section], values: dict[str, Any]) -> None:
    found = section(**values)
    assert set(values) <= found.model_fields_set
    for name, given in values.items():
        kept = getattr(found, name)
        if isinstance(kept, SecretStr):
            kept = kept.get_secret_value()
        if isinstance(given, str) and name in {"follow", "base_url", "zone"}:  # have one form
            given, kept = given.rstrip("/.").lower(), kept.rstrip("/.")  # noqa: PLW2901
        assert kept == (Path(given) if isinstance(kept, Path) else given), name


@pytest.mark.parametrize(("section", "values", "sentence"), REFUSED)
def test_refused(section: type[Section], values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError, match=sentence):
        section(**values)


def test_values_are_kept_in_one_form() -> None:
    assert OidcSettings(base_url="https://filter.lan/").base_url == "https://filter.lan"
    assert FleetSettings(follow="https://a:1/", key="k").follow == "https://a:1"
    assert RpzSettings(zone="Filter.RPZ.").zone == "filter.rpz"
    assert HelperSettings.model_validate({"socket": ""}).socket is None
    assert LogSettings(ignored_hosts=("*.A.example", "b.example")).ignored_hosts == ("a.example", "b.example")
    assert GatewaySettings(hosts=("A.example",)).hosts == ("a.example",)
    for word, scope in (("true", CosmeticScope.ALL), (False, CosmeticScope.OFF), ("specific", CosmeticScope.SPECIFIC)):
        assert FilterSettings.model_validate({"cosmetic": word}).cosmetic is scope


@pytest.mark.parametrize(
    ("listen", "tls", "used"),
    [
        ("127.0.0.1:1", WebTls.AUTO, False),
        ("[::1]:1", WebTls.AUTO, False),
        ("localhost:1", WebTls.AUTO, False),
        ("", WebTls.AUTO, False),
        ("0.0.0.0:1", WebTls.AUTO, True),
        ("0.0.0.0:1", WebTls.OFF, False),
        ("127.0.0.1:1", WebTls.ON, True),
    ],
)
def test_whether_the_dashboard_has_tls(listen: str, tls: WebTls, *, used: bool) -> None:
    assert WebSettings(listen=listen, tls=tls).uses_tls is used


def test_what_is_on() -> None:
    assert not OidcSettings().is_on
    assert OidcSettings(issuer="https://a", client_id="f").is_on is True
    assert [
        OidcSettings.model_validate(values).maps_roles for values in ({}, {"admin_values": ("a",)}, {"viewer_values": ("a",)})
    ] == [*(False, True, True)]
    every = {"webhook_url": "http://a", "ntfy_url": "http://b", "smtp_host": "c", "mail_to": ("a@b",), "command": ("d",)}
    assert NotifySettings.model_validate(every).channel_names == ("webhook", "ntfy", "mail", "command")
    assert NotifySettings(smtp_host="c").channel_names == ()
    assert NotifySettings(mail_to=("a@b",)).channel_names == ()
    learn = LearnSettings(mode=GrowthMode.BLOCK, modes={"adult": GrowthMode.REVIEW})
    assert (learn.mode_of("adult"), learn.mode_of("games")) == (GrowthMode.REVIEW, GrowthMode.BLOCK)


def test_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_data_dir() == tmp_path / ".local" / "state" / "gatewayfilter"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "x"))
    assert default_data_dir() == tmp_path / "x" / "gatewayfilter"
    assert (bundled_folder() / "categories.toml").is_file()
    assert Settings(data_dir=tmp_path).store_url == f"sqlite:///{tmp_path}/gatewayfilter.sqlite3"
    assert Settings.model_validate({"store": {"url": "postgresql+psycopg://a"}}).store_url == "postgresql+psycopg://a"


def test_old_names_become_new_ones() -> None:
    given = [
        GivenSetting("tls.pass_through", True, "file a"),
        GivenSetting("web.listen", "x", "file a"),
        GivenSetting("crawl.tasks", {"news": {"pages_a_site": 1, "depth": 2}, "odd": 3}, "file a"),
    ]
    current, warnings = current_settings(given)
    assert {setting.key: setting.value for setting in current} == {
        "tls.pinned_apps": True,
        "web.listen": "x",
        "crawl.tasks": {"news": {"pages_per_site": 1, "depth": 2}, "odd": 3},
    }
    assert warnings == [
        "setting 'tls.pass_through' (file a) is now called 'tls.pinned_apps'",
        "setting 'crawl.tasks.news.pages_a_site' (file a) is now called 'pages_per_site'",
    ]
    assert current_settings([GivenSetting("crawl.tasks", 5, "file a")])[0][0].value == 5
    for twice in (
        [("tls.pass_through", 1), ("tls.pinned_apps", 1)],
        [("crawl.tasks", {"a": {"pages_a_site": 1, "pages_per_site": 1}})],
    ):
        with pytest.raises(ConfigError, match="given twice"):
            current_settings([GivenSetting(key, value, "file a") for key, value in twice])

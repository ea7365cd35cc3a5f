"""Settings: sources, order, errors."""

import os
from pathlib import Path

import pytest

from gatewayfilter import config
from gatewayfilter.config import ENV_PREFIX, Settings, UnknownRule, known_keys, load, split_address
from gatewayfilter.errors import ConfigError
from gatewayfilter.settings.renamed import RENAMED_SETTINGS
from tests.case_tables import all_cases


def write(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "config.toml"
    file.write_text(text)
    return file


def test_later_sources_win(tmp_path: Path) -> None:
    file = write(tmp_path, '[proxy]\nlisten = "127.0.0.1:1"\nworkers = 1\nhold_ms = 1\n')
    loaded = load(
        file=file,
        environ={"GATEWAYFILTER_PROXY__WORKERS": "2", "GATEWAYFILTER_PROXY__HOLD_MS": "2"},
        options={"proxy.hold_ms": 3, "proxy.mode": None},
    )
    assert (loaded.settings.proxy.listen, loaded.settings.proxy.workers, loaded.settings.proxy.hold_ms) == ("127.0.0.1:1", 2, 3)
    assert loaded.origins["proxy.listen"] == f"file {file}"
    assert loaded.origins["proxy.workers"] == "environment GATEWAYFILTER_PROXY__WORKERS"
    assert loaded.origins["proxy.hold_ms"] == "option"
    assert loaded.origins["proxy.mode"] == "default"


def test_every_key_can_come_from_the_environment() -> None:
    for key, _ in known_keys():
        value: object = load(environ={}).settings
        for part in key.split("."):
            value = getattr(value, part)
        if value is None or key == "data_dir":
            continue
        text = ",".join(str(item) for item in value) if isinstance(value, tuple) else str(value)
        name = ENV_PREFIX + key.upper().replace(".", "__")
        assert load(environ={name: text}).settings == load(environ={}).settings, key


def test_the_state_folder_may_hold_the_file(tmp_path: Path) -> None:
    write(tmp_path, '[proxy]\nunknown = "block"\n')
    for loaded in (load(environ={"GATEWAYFILTER_DATA_DIR": str(tmp_path)}), load(environ={}, options={"data_dir": tmp_path})):
        assert loaded.settings.proxy.unknown is UnknownRule.BLOCK


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[proxy]\nlistn = "x"\n', ["proxy.listn", "did you mean 'proxy.listen'"]),
        ('[proxi]\nlisten = "x"\n', ["proxi", "did you mean"]),
        ('listen = "x"\n', ["did you mean 'proxy.listen'"]),
        ('[prxy]\nmode = "x"\n', ["did you mean 'proxy'"]),
        ('data_dri = "x"\n', ["data_dri", "did you mean 'data_dir'"]),
        ('[proxy]\nlisten = "8080"\n', ["proxy.listen", "HOST:PORT"]),
        ("[proxy]\nworkers = -1\n", ["proxy.workers", "greater than or equal to 0"]),
        ('[proxy]\nworkers = "many"\n', ["proxy.workers", "must be a whole number"]),
        ('[proxy]\nunknown = "maybe"\n', ["proxy.unknown", "'allow', 'hold', 'inspect' or 'block'"]),
        ('[proxy]\nmode = "reverse"\n', ["proxy.mode", "regular, transparent or upstream"]),
        ('[crawl]\nallow_networks = ["127.0.0.1/8"]\n', ["crawl.allow_networks", "host bits"]),
        ('[queue]\nurl = "postgresql://x"\n', ["queue.url", "redis-cluster://"]),
        ('[cache]\nurl = "redis://x?a=1"\n', ["cache.url", "rediss://"]),
        ('[cache]\nurl = "redis://x:99999"\n', ["cache.url", "rediss://"]),
        ("[proxy\n", ["not valid TOML"]),
        ("proxy = 3\n", ["proxy"]),
    ],
)
def test_a_bad_file_gets_one_clear_sentence(tmp_path: Path, text: str, words: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        load(file=write(tmp_path, text), environ={})
    for word in words:
        assert word in str(caught.value)
    assert "\n" not in str(caught.value)


OLD_FILE = """
[tls]
pass_through_days = 3
[filter]
off_categories = ["ads"]
[gateway]
free_devices = ["192.168.1.7"]
[crawl.tasks.news]
pages_a_site = 7
[web]
listen = "127.0.0.1:8081"
"""


def test_names_of_earlier_releases_count_and_are_warned_of(tmp_path: Path) -> None:
    file = write(tmp_path, OLD_FILE)
    loaded = load(file=file, environ={"GATEWAYFILTER_GATEWAY__BYPASS": "a.example,b.example"})
    settings = loaded.settings
    assert (settings.tls.pinned_apps_days, settings.filter.disabled_categories) == (3, ("ads",))
    assert (settings.gateway.bypass_devices, settings.gateway.pac_bypass) == (("192.168.1.7",), ("a.example", "b.example"))
    assert settings.crawl.tasks["news"].pages_per_site == 7
    assert loaded.origins["tls.pinned_apps_days"] == f"file {file}"
    assert loaded.origins["gateway.pac_bypass"] == "environment GATEWAYFILTER_GATEWAY__BYPASS"
    assert len(loaded.warnings) == 5
    assert f"setting 'tls.pass_through_days' (file {file}) is now called 'tls.pinned_apps_days'" in loaded.warning
    assert "'crawl.tasks.news.pages_a_site'" in loaded.warning
    assert settings.web.listen == "127.0.0.1:8081"
    assert "\n" not in loaded.warning
    assert load(environ={}).warnings == ()


def test_a_later_source_wins_whichever_name_it_uses(tmp_path: Path) -> None:
    file = write(tmp_path, "[tls]\npass_through_days = 3\n")
    assert load(file=file, environ={"GATEWAYFILTER_TLS__PINNED_APPS_DAYS": "5"}).settings.tls.pinned_apps_days == 5
    file = write(tmp_path, "[tls]\npinned_apps_days = 3\n")
    assert load(file=file, environ={"GATEWAYFILTER_TLS__PASS_THROUGH_DAYS": "5"}).settings.tls.pinned_apps_days == 5


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[tls]\npass_through = true\npinned_apps = true\n", "'tls.pinned_apps'.* by its old and by its new name"),
        ("[crawl.tasks.a]\npages_a_site = 1\npages_per_site = 2\n", r"'crawl\.tasks\.a\.pages_per_site'.* given twice"),
        ("[tls]\npass_through_days = 0\n", "tls.pinned_apps_days.*greater than 0"),
        ("[web]\nlistn = 1\n", "unknown setting 'web.listn'"),
        ('[crawl.tasks]\na = "x"\n', "crawl.tasks.a"),
    ],
)
def test_old_names_that_are_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        load(file=write(tmp_path, text), environ={})


@all_cases(("old", "new"), RENAMED_SETTINGS.items())
def test_every_alias_leads_to_a_setting(old: str, new: str) -> None:
    known = dict(known_keys())
    assert new in known
    assert old not in known


@pytest.mark.parametrize("url", ["redis://", "redis://a,b", "redis-cluster://a/1", "redis://u:hush@x/one", "redis://a b", "x"])
def test_an_address_of_redis_is_refused_without_its_password(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigError, match="must be redis://") as caught:
        load(file=write(tmp_path, f'[cache]\nurl = "{url}"\n'), environ={})
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("url", ["redis://x", "rediss://u:hush@[::1]:7000/3", "redis-cluster://:hush@a:7000,b:7001"])
def test_no_setting_shows_the_password_of_redis(tmp_path: Path, url: str) -> None:
    settings = load(file=write(tmp_path, f'[queue]\nurl = "{url}"\n'), environ={}).settings
    assert settings.queue.url.get_secret_value() == url
    assert "hush" not in repr(settings)


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read .*missing\.toml: No such file"):
        load(file=tmp_path / "missing.toml", environ={})
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="cannot read"):
        load(file=binary, environ={})


@pytest.mark.parametrize("is_link", [True, False])
def test_what_has_the_place_of_the_file_is_no_reason_for_defaults(tmp_path: Path, *, is_link: bool) -> None:
    place = tmp_path / "config.toml"
    if is_link:
        place.symlink_to(tmp_path / "on-a-disk-that-is-not-mounted.toml")
    else:
        place.mkdir()
    with pytest.raises(ConfigError, match=r"cannot read .*config\.toml: "):
        load(environ={"GATEWAYFILTER_DATA_DIR": str(tmp_path)})


def test_an_unknown_variable_is_an_error_with_a_suggestion() -> None:
    load(environ={"GATEWAYFILTER_TEST_DATA": "somewhere"})
    with pytest.raises(ConfigError, match=r"GATEWAYFILTER_PROXY__LISTN.*did you mean 'proxy\.listen'"):
        load(environ={"GATEWAYFILTER_PROXY__LISTN": "127.0.0.1:1"})


@all_cases(
    ("text", "expected"),
    [("127.0.0.1:80", ("127.0.0.1", 80)), ("[::1]:0", ("::1", 0)), ("name:65535", ("name", 65535))],
)
def test_addresses(text: str, expected: tuple[str, int]) -> None:
    assert split_address(text) == expected


@all_cases("text", ["", "80", ":80", "host:", "host:x", "host:65536", "::1:80"])
def test_no_addresses(text: str) -> None:
    with pytest.raises(ValueError, match="HOST:PORT"):
        split_address(text)


def test_every_setting_is_described() -> None:
    assert [key for key, text in known_keys() if not text] == []


def test_settings_are_immutable() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings().proxy.listen = "x"


def test_the_state_folder_follows_xdg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(os.environ, "XDG_STATE_HOME", str(tmp_path))
    assert load(environ={}).settings.data_dir == tmp_path / "gatewayfilter"


def test_crawl_tasks_are_tables_of_their_own(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[crawl]\nworkers = 2\n[crawl.tasks.news]\ndepth = 3\nhosts = ["News.example", "*.b.example"]\n')
    task = load(file=file, environ={}).settings.crawl.tasks["news"]
    assert (task.depth, task.hosts, task.pages_per_site) == (3, ("news.example", "*.b.example"), 100)
    inherited = load(environ={"GATEWAYFILTER_CRAWL__TASKS": '{"a": {"follow": "harmful"}}'})
    assert inherited.settings.crawl.tasks["a"].follow == "harmful"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[crawl.tasks.news]\ndept = 3", r"crawl\.tasks\.news\.dept.*did you mean 'depth'"),
        ("[crawl.tasks.news]\npriority = 10", r"crawl\.tasks\.news\.priority.*greater than or equal to 11"),
        ('[crawl.tasks.news]\nhosts = ["http://a.example/"]', r"crawl\.tasks\.news\.hosts.*must be hosts"),
        ('[crawl.tasks."no name"]\ndepth = 3', r"crawl\.tasks\.no name.*pattern"),
        ("[crawl.tasks]\ndepth = 3", r"crawl\.tasks\.depth"),
    ],
)
def test_crawl_tasks_that_are_none(tmp_path: Path, text: str, sentence: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=sentence):
        load(file=file, environ={})


def test_crawl_tasks_in_the_environment_are_json() -> None:
    with pytest.raises(ConfigError, match=r"GATEWAYFILTER_CRAWL__TASKS.*not valid JSON"):
        load(environ={"GATEWAYFILTER_CRAWL__TASKS": "news"})


def test_tables_within_tables(tmp_path: Path) -> None:
    file = write(tmp_path, '[web.oidc]\nissuer = "https://id.example"\nclient_id = "f"\nadmin_values = ["a"]\n')
    loaded = load(
        file=file, environ={"GATEWAYFILTER_WEB__OIDC__ADMIN_VALUES": "b, c", "GATEWAYFILTER_WEB__OIDC__CLIENT_SECRET": "s"}
    )
    oidc = loaded.settings.web.oidc
    assert (oidc.issuer, oidc.admin_values, oidc.client_secret.get_secret_value()) == ("https://id.example", ("b", "c"), "s")
    assert loaded.origins["web.oidc.issuer"] == f"file {file}"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('client_secret = "s"', "client_secret' is given by the environment alone.*client_secret_file"),
        ('isuer = "x"', "unknown setting 'web.oidc.isuer'.*did you mean 'web.oidc.issuer'"),
        ('issuer = "http://id.example"\nclient_id = "x"', r"'web\.oidc\.issuer' \(file .*begins with https://"),
        ('issuer = "https://id.example/?x"\nclient_id = "x"', "begins with https://"),
        ('issuer = "https://id.example"', "an issuer needs a client_id"),
        ("new_accounts = true", "new_accounts needs"),
        ('base_url = "https://filter.lan/x"', "without a path"),
        ('base_url = "javascript:x"', "without a path"),
        ('scopes = ["a b"]', "names of scopes"),
        ('passwords = "nobody"', r"'web\.oidc\.passwords'"),
        ("claim = 3", r"'web\.oidc\.claim'"),
    ],
)
def test_single_sign_on_that_cannot_be(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=words):
        load(file=write(tmp_path, f"[web.oidc]\n{text}\n"), environ={})


def test_names_that_are_nearly_right_get_a_hint() -> None:
    known = dict(known_keys())
    for given, near in (
        ("listen", "proxy.listen"),
        ("proxi.listen", "proxy.listen"),
        ("proxi.nothing", "proxy"),
        ("proxy.listn", "proxy.listen"),
        ("proxi", "proxy"),
        ("enabled", min(name for name in known if name.endswith(".enabled"))),
        ("zzzz", ""),
        ("zzzz.yyyy", ""),
    ):
        assert config._nearest(given, known) == near, given


@all_cases(
    ("name", "text", "value"),
    [
        ("FILTER__DISABLED_CATEGORIES", " ads, ,gambling ,", ("ads", "gambling")),
        ("LEARN__MODES", "{ ads = review , gambling=block }", {"ads": "review", "gambling": "block"}),
        ("LEARN__MODES", "", {}),
        ("PROXY__LISTEN", "127.0.0.1:9", "127.0.0.1:9"),
    ],
)
def test_lists_and_tables_in_the_environment(name: str, text: str, value: object) -> None:
    section, key = name.lower().split("__")
    loaded = load(environ={f"GATEWAYFILTER_{name}": text})
    found = getattr(getattr(loaded.settings, section), key)
    assert (tuple(found) if isinstance(value, tuple) else found) == value
    assert loaded.origins[f"{section}.{key}"] == f"environment GATEWAYFILTER_{name}"
    assert loaded.origins["proxy.unknown"] == "default"


def test_an_option_that_is_none_is_an_error_with_a_suggestion() -> None:
    with pytest.raises(ConfigError, match=r"^unknown setting 'proxy.listn' in the command line; did you mean 'proxy.listen'\?$"):
        load(environ={}, options={"proxy.listn": "127.0.0.1:1"})


def test_what_is_told_of_a_wrong_value(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    for text, sentence in (
        ('[crawl]\nworkers = "x"', f"setting 'crawl.workers' (file {file}): must be a whole number"),
        ("[proxy]\nunknown = 'x'", None),
        ("[web.oidc]\nscopes = 7", f"setting 'web.oidc.scopes' (file {file}): must be a list: [\"7\"]"),
        (
            '[filter]\ndisabled_categories = "ads"',
            f"setting 'filter.disabled_categories' (file {file}): must be a list: [\"ads\"]",
        ),
    ):
        file.write_text(text)
        with pytest.raises(ConfigError) as refused:
            load(file=file, environ={})
        told = str(refused.value)
        assert told == sentence if sentence else told.startswith(f"setting 'proxy.unknown' (file {file}): input should be")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[crawl.tasks.news]\nzzzz = 3", "unknown setting 'crawl.tasks.news.zzzz' in file {file}"),
        ("[crawl.tasks.news]\ndept = 3", "unknown setting 'crawl.tasks.news.dept' in file {file}; did you mean 'depth'?"),
        (
            "[learn.modes]\nads = 3",
            "setting 'learn.modes' (file {file}): input should be 'block', 'block-and-review' or 'review'",
        ),
        ("[zzzz]\ny = 1", "unknown setting 'zzzz' in {file}"),
        ("[web.oidc]\nscopes = [7]", "setting 'web.oidc.scopes' (file {file}): input should be a valid string"),
        ("[proxy]\nworkers = -1", "setting 'proxy.workers' (file {file}): input should be greater than or equal to 0"),
    ],
)
def test_the_whole_sentence_about_a_setting(text: str, sentence: str, tmp_path: Path) -> None:
    file = write(tmp_path, text)
    with pytest.raises(ConfigError) as refused:
        load(file=file, environ={})
    assert str(refused.value) == sentence.format(file=file)


def test_where_the_file_of_the_settings_is_looked_for(tmp_path: Path) -> None:
    for name, listen in (("a", "127.0.0.1:1"), ("b", "127.0.0.1:2")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.toml").write_text(f'[proxy]\nlisten = "{listen}"')
    a, b = tmp_path / "a", tmp_path / "b"
    in_environment = {"GATEWAYFILTER_DATA_DIR": str(a)}
    for options, environ, file, listen in (
        ({}, in_environment, None, "127.0.0.1:1"),
        ({"data_dir": b}, in_environment, None, "127.0.0.1:2"),
        ({"data_dir": None}, in_environment, None, "127.0.0.1:1"),
        ({}, in_environment | {"GATEWAYFILTER_CONFIG": str(b / "config.toml")}, None, "127.0.0.1:2"),
        ({}, in_environment | {"GATEWAYFILTER_CONFIG": ""}, None, "127.0.0.1:1"),
        ({}, {"GATEWAYFILTER_CONFIG": str(b / "config.toml")}, a / "config.toml", "127.0.0.1:1"),
    ):
        loaded = load(file=file, environ=environ, options=options)
        assert loaded.settings.proxy.listen == listen
        assert loaded.file is not None
        assert loaded.origins["proxy.listen"] == f"file {loaded.file}"
    assert load(environ={"GATEWAYFILTER_DATA_DIR": str(tmp_path)}).file is None


def test_warnings_stand_in_one_line() -> None:
    loaded = load(environ={})
    assert (loaded.warnings, loaded.warning) == ((), "")
    assert config.Loaded(loaded.settings, {}, ("one", "two")).warning == "one; two"


def test_variables_of_others_are_passed_over() -> None:
    loaded = load(environ={"PATH": "/bin", "GATEWAYFILTER_TEST_DATA": "x", "GATEWAYFILTER_PURE": "1"})
    assert set(loaded.origins.values()) == {"default"}
    after = load(environ={"PATH": "/bin", "GATEWAYFILTER_PROXY__LISTEN": "127.0.0.1:9"})
    assert after.settings.proxy.listen == "127.0.0.1:9"

"""The first set-up: what it would do, what it does, and what it leaves as it is."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gatewayfilter.config import Loaded, load
from gatewayfilter.errors import ConfigError, SourceError
from gatewayfilter.model import DEFAULT, policy_values
from gatewayfilter.sources import UpdateStatus
from gatewayfilter.store import Store
from gatewayfilter.use_cases.policies import PolicyEditor
from gatewayfilter.use_cases.setup import PlannedValue, SetupChoices, apply_setup, config_file_of, plan_setup
from gatewayfilter.wiring import snapshot_folder, subscriptions
from tests.sources.list_server import ListServer
from tests.use_cases.small_program import small_program


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ListServer]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    listening = ListServer()
    listening.serve("/small-ads", b"0.0.0.0 ads.example\n")
    listening.serve("/small-malware", b"", status=404)
    small_program(tmp_path / "bundled", monkeypatch, listening.base)
    yield listening
    listening.close()


@pytest.fixture
def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Loaded:
    monkeypatch.delenv("GATEWAYFILTER_CONFIG", raising=False)
    if not (tmp_path / "bundled").exists():
        small_program(tmp_path / "bundled", monkeypatch)
    return load(environ={}, options={"data_dir": tmp_path / "state", "learn.enabled": False})


def test_a_plan_names_lists_settings_and_policy(loaded: Loaded, store: Store) -> None:
    file = config_file_of(loaded.settings, None)
    assert file == loaded.settings.data_dir / "config.toml"
    choices = SetupChoices("home", "192.0.2.1:8080", "Europe/Berlin")
    plan = plan_setup(loaded, store.policies.read(), choices, file)
    ads, malware = plan.lists
    assert (ads.name, ads.title, ads.category, ads.homepage) == ("small-ads", "Small ads", "ads", "https://lists.example/")
    assert (ads.licence, ads.entries, ads.size_mb, ads.pending) == ("MIT", 20, 0.5, False)
    assert malware.name == "small-malware"
    assert plan.settings == (
        PlannedValue("proxy.listen", loaded.settings.proxy.listen, "192.0.2.1:8080"),
        PlannedValue("filter.timezone", loaded.settings.filter.timezone, "Europe/Berlin"),
    )
    assert plan.policy == (PlannedValue("safesearch", "", "on"), PlannedValue("youtube", "", "moderate"))
    assert (plan.purpose, plan.config_file, plan.notes, plan.is_empty) == ("home", file, (), False)
    assert not file.exists()
    assert not replace(plan, lists=(), settings=()).is_empty
    assert not replace(plan, lists=(), policy=()).is_empty
    assert not replace(plan, settings=(), policy=()).is_empty
    assert replace(plan, lists=(), settings=(), policy=()).is_empty


def test_choices_narrow_a_plan(loaded: Loaded, store: Store) -> None:
    PolicyEditor(store.policies).set_policy(DEFAULT, [("youtube", "strict")], known_categories=(), known_sources=())
    file = loaded.settings.data_dir / "config.toml"
    same = SetupChoices("home", loaded.settings.proxy.listen, without=("small-ads",))
    plan = plan_setup(loaded, store.policies.read(), same, file)
    assert [item.name for item in plan.lists] == ["small-malware"]
    assert plan.settings == (), "what is so already is not written"
    assert [value.key for value in plan.policy] == ["safesearch"], "what the operator has set stays"
    plan = plan_setup(loaded, store.policies.read(), SetupChoices("school", safe_search=False), file)
    assert ([item.name for item in plan.lists], plan.policy) == (["small-ads"], ())


@pytest.mark.parametrize(
    ("choices", "sentence"),
    [
        (SetupChoices("moon"), "no lists for 'moon'"),
        (SetupChoices("home", without=("none",)), "'none' is none of the lists for 'home'; there are small-ads, small-malware"),
        (SetupChoices("home", listen="nowhere"), "the address must be HOST:PORT"),
        (SetupChoices("home", timezone="Mars/Olympus"), "no time zone 'Mars/Olympus'"),
    ],
)
def test_what_cannot_be_is_refused(choices: SetupChoices, sentence: str, loaded: Loaded, store: Store) -> None:
    with pytest.raises((SourceError, ConfigError), match=sentence):
        plan_setup(loaded, store.policies.read(), choices, loaded.settings.data_dir / "config.toml")


def test_a_file_that_cannot_be_changed_is_refused_before_anything_is_done(loaded: Loaded, store: Store, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[proxy\n")
    choices = SetupChoices("home", "192.0.2.1:8080")
    with pytest.raises(ConfigError):
        plan_setup(loaded, store.policies.read(), choices, tmp_path / "config.toml")


def test_the_settings_file_is_the_one_in_use(loaded: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAYFILTER_CONFIG", "/etc/one.toml")
    assert config_file_of(loaded.settings, None) == Path("/etc/one.toml")
    assert config_file_of(loaded.settings, Path("/etc/two.toml")) == Path("/etc/two.toml")


def test_a_choice_without_effect_is_told(store: Store, tmp_path: Path, loaded: Loaded) -> None:
    by_option = load(environ={}, options={"data_dir": loaded.settings.data_dir, "proxy.listen": "127.0.0.1:1"})
    choices = SetupChoices("home", "127.0.0.1:2", "Europe/Berlin")
    (note,) = plan_setup(by_option, store.policies.read(), choices, tmp_path / "config.toml").notes
    assert note.startswith("proxy.listen is set by ")
    assert "wins over the file" in note


def test_a_plan_is_carried_out_and_what_does_not_come_is_pending(server: ListServer, loaded: Loaded, store: Store) -> None:
    file = loaded.settings.data_dir / "config.toml"
    choices = SetupChoices("home", "192.0.2.1:8080")
    done = apply_setup(loaded, store, plan_setup(loaded, store.policies.read(), choices, file))
    assert [(result.name, result.status) for result in done.results] == [
        ("small-ads", UpdateStatus.UPDATED),
        ("small-malware", UpdateStatus.PENDING),
    ]
    assert [result.name for result in done.pending] == ["small-malware"]
    assert done.published is not None
    assert snapshot_folder(loaded.settings).current() is not None
    assert file.read_text() == '[proxy]\nlisten = "192.0.2.1:8080"\n'
    default = store.policies.read().policy(DEFAULT)
    assert default is not None
    assert policy_values(default) == {"safesearch": "on", "youtube": "moderate"}

    again = plan_setup(loaded, store.policies.read(), SetupChoices("home"), file)
    assert [(item.name, item.pending) for item in again.lists] == [("small-malware", True)]
    assert (again.settings, again.policy) == ((), ())
    server.serve("/small-malware", b"0.0.0.0 bad.example\n")
    assert apply_setup(loaded, store, again).pending == ()
    assert not subscriptions(loaded.settings).get("small-malware").is_pending
    end = plan_setup(loaded, store.policies.read(), SetupChoices("home"), file)
    assert end.is_empty
    nothing = apply_setup(loaded, store, end)
    assert (nothing.results, nothing.published) == ((), None)

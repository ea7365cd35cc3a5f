"""The first set-up: a plan of lists, settings and policy values that fit a purpose, and its application.

Both steps can be repeated: what is there already is left as it is, and what an interrupted set-up did not reach is in the next
plan. The command's wizard asks for the choices; any other front end can do so as well.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gatewayfilter.config import Loaded, Settings, split_address
from gatewayfilter.engine.policies.time_windows import find_zone
from gatewayfilter.errors import ConfigError, PolicyError, SourceError
from gatewayfilter.model import DEFAULT, Policy, PolicySet, policy_values, with_value
from gatewayfilter.sources import Subscriptions, UpdateResult, UpdateStatus
from gatewayfilter.sources.parallel import WIDTH
from gatewayfilter.store import Store
from gatewayfilter.use_cases.policies import PolicyEditor
from gatewayfilter.use_cases.settings_writer import with_settings, write_settings
from gatewayfilter.wiring import Progress, prepare_data_dir, publish_now, subscriptions

if TYPE_CHECKING:  # with numpy, when something is published
    from gatewayfilter.sources.publish import PublishReport

_POLICY_VALUES: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "home": (("safesearch", "on"), ("youtube", "moderate")),
    "school": (("safesearch", "on"), ("youtube", "strict")),
}
"""Values of the policy `default` by purpose; those that this version of the program has no such value for are left out."""


@dataclass(frozen=True, slots=True)
class SetupChoices:
    """What the operator chose.

    Attributes:
        purpose: a bundle of the catalogue: `home`, `school` or `office`.
        listen: address and port for clients, `""` to leave the setting.
        timezone: IANA zone of schedules, `""` to leave the setting.
        safe_search: whether search engines and YouTube are restricted where the purpose suggests it.
        without: lists of the bundle that are not wanted.
    """

    purpose: str
    listen: str = ""
    timezone: str = ""
    safe_search: bool = True
    without: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlannedList:
    """A list to subscribe to, or to fetch because it is pending.

    Attributes:
        homepage: of its publisher.
        entries, size_mb: what it costs, as orders of magnitude; 0 for unknown.
        pending: it is subscribed to, and was never fetched.
    """

    name: str
    title: str
    category: str
    homepage: str
    licence: str
    entries: int
    size_mb: float
    pending: bool = False


@dataclass(frozen=True, slots=True)
class PlannedValue:
    """A setting or a policy value to write; `old` is `""` for an unset policy value."""

    key: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class SetupPlan:
    """What a set-up would do.

    Attributes:
        config_file: to which the settings are written.
        policy: values of the policy `default`.
        notes: sentences on choices that would have no effect.
    """

    purpose: str
    config_file: Path
    lists: tuple[PlannedList, ...]
    settings: tuple[PlannedValue, ...]
    policy: tuple[PlannedValue, ...]
    notes: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left to do."""
        return not (self.lists or self.settings or self.policy)


@dataclass(frozen=True, slots=True)
class SetupResult:
    """What a set-up did.

    Attributes:
        results: of the lists; one that could not be fetched is pending.
        published: the new snapshot, `None` when no list was fetched.
    """

    results: tuple[UpdateResult, ...]
    published: PublishReport | None

    @property
    def pending(self) -> tuple[UpdateResult, ...]:
        """The lists that could not be fetched yet."""
        return tuple(result for result in self.results if result.error)


def config_file_of(settings: Settings, given: Path | None) -> Path:
    """Returns the settings file that is in use, or would be: `--config`, `$GATEWAYFILTER_CONFIG`, `config.toml`."""
    named = os.environ.get("GATEWAYFILTER_CONFIG")
    return given or (Path(named) if named else settings.data_dir / "config.toml")


def plan_setup(loaded: Loaded, policies: PolicySet, choices: SetupChoices, config_file: Path) -> SetupPlan:
    """Returns what a set-up would do; nothing is written or fetched.

    Args:
        loaded: the settings in force, with their origins.
        policies: as they are.
        choices: of the operator.
        config_file: to write settings to (`config_file_of`).

    Raises:
        SourceError: there is no such purpose, or no such list to leave out.
        ConfigError: an address, a zone or the file cannot be used.
    """
    wanted = {"proxy.listen": _address(choices.listen), "filter.timezone": _zone(choices.timezone)}
    current = {"proxy.listen": loaded.settings.proxy.listen, "filter.timezone": loaded.settings.filter.timezone}
    written = tuple(PlannedValue(key, current[key], new) for key, new in wanted.items() if new and new != current[key])
    if written:
        text = config_file.read_text(encoding="utf-8") if config_file.is_file() else ""
        with_settings(text, {value.key: value.new for value in written}, str(config_file))
    notes = tuple(
        f"{value.key} is set by {loaded.origins[value.key]}, which wins over the file"
        for value in written
        if not loaded.origins[value.key].startswith(("default", "file "))
    )
    lists = _planned_lists(subscriptions(loaded.settings), choices)
    policy = _planned_policy(policies, choices.purpose) if choices.safe_search else ()
    return SetupPlan(choices.purpose, config_file, lists, written, policy, notes)


def _address(listen: str) -> str:
    try:
        if listen:
            split_address(listen)
    except ValueError as error:
        raise ConfigError(f"the address {error}") from error
    return listen


def _zone(name: str) -> str:
    try:
        if name:
            find_zone(name)
    except PolicyError as error:
        raise ConfigError(str(error)) from error
    return name


def _planned_lists(known: Subscriptions, choices: SetupChoices) -> tuple[PlannedList, ...]:
    missing = known.missing(choices.purpose)
    bundle = known.bundles[choices.purpose].lists
    for name in choices.without:
        if name not in bundle:
            raise SourceError(f"{name!r} is none of the lists for {choices.purpose!r}; there are {', '.join(bundle)}")
    pending = {item.definition.name for item in known.all() if item.is_pending}
    chosen = [name for name in bundle if name not in choices.without and (name in missing or name in pending)]
    return tuple(
        PlannedList(
            name,
            entry.title,
            entry.category,
            entry.homepage,
            entry.licence,
            entry.entries,
            entry.size_mb,
            pending=name not in missing,
        )
        for name in chosen
        for entry in [known.catalog[name]]
    )


def _planned_policy(policies: PolicySet, purpose: str) -> tuple[PlannedValue, ...]:
    """Values that are unset; what the operator has set stays."""
    there = policy_values(policies.policy(DEFAULT) or Policy(DEFAULT))
    return tuple(
        PlannedValue(key, "", value)
        for key, value in _POLICY_VALUES.get(purpose, ())
        if key not in there and _is_supported(key, value)
    )


def _is_supported(key: str, value: str) -> bool:
    try:
        with_value(Policy(DEFAULT), key, value, categories=(), sources=())
    except PolicyError:
        return False
    return True


def apply_setup(loaded: Loaded, store: Store, plan: SetupPlan, progress: Progress | None = None) -> SetupResult:
    """Carries a plan out. Interrupted anywhere, it leaves a state that works, and that the next plan completes.

    The settings come first, then the policy, then the subscriptions, all before the first download: what was not fetched is
    pending, and fetched by the running filter.

    Args:
        loaded: the settings in force.
        store: the database.
        plan: by `plan_setup`.
        progress: called with what is being done.

    Raises:
        StartupError, ConfigError, StoreError, SourceError, SnapshotError: something cannot be written; with the reason.
    """
    names = begin_setup(loaded, store, plan)
    known = subscriptions(loaded.settings)
    results = _fetched(known, names, progress)
    fetched = any(result.status is UpdateStatus.UPDATED for result in results)
    return SetupResult(results, publish_now(loaded.settings, store, progress=progress) if fetched else None)


def begin_setup(loaded: Loaded, store: Store, plan: SetupPlan) -> list[str]:
    """Writes settings, policy and subscriptions of a plan. Returns the names of the lists, which are to be fetched.

    Raises:
        StartupError, ConfigError, StoreError, SourceError: something cannot be written; with the reason.
    """
    settings = loaded.settings
    prepare_data_dir(settings)
    if plan.settings:
        write_settings(plan.config_file, {value.key: value.new for value in plan.settings})
    if plan.policy:
        values = [(value.key, value.new) for value in plan.policy]
        PolicyEditor(store.policies).set_policy(DEFAULT, values, known_categories=(), known_sources=())
    known = subscriptions(settings)
    there = set(known.names())
    for item in plan.lists:
        if item.name not in there:
            known.add(item.name, fetch=False)
    return [item.name for item in plan.lists]


def _fetched(known: Subscriptions, names: Sequence[str], progress: Progress | None) -> tuple[UpdateResult, ...]:
    if not names:
        return ()
    results = known.update(names, width=WIDTH, progress=progress)
    return tuple(
        replace(result, status=UpdateStatus.PENDING) if result.error and known.get(result.name).is_pending else result
        for result in results
    )

"""Engine states: which caches and views another overlay and other policies leave in use."""

from gatewayfilter.engine.policies.client_policies import ClientPolicies
from gatewayfilter.engine.policies.compilation import compile_policies
from gatewayfilter.engine.policies.effective_policy import ListSelection
from gatewayfilter.engine.policies.service_index import ServiceIndex
from gatewayfilter.engine.snapshot.reader import Snapshot, SnapshotBuilder
from gatewayfilter.engine.state.engine_state import EngineState
from gatewayfilter.engine.state.overlay import Overlay
from gatewayfilter.model import CategoryAction, Policy, PolicySet, Service, Source

GAMES = Policy("default", categories={"games": CategoryAction.ALLOW})
SOCIAL = Policy("default", categories={"social": CategoryAction.ALLOW})
CLIPS = ServiceIndex({"clips": Service("clips", "Clips", "短片", "video", ("clips.test",))})


def bare() -> EngineState:
    builder = SnapshotBuilder(created_at=0.0)
    builder.add_keys(builder.add_source(Source("arcades", category="games")), [".arcade.test"])
    return EngineState(Snapshot.from_bytes(builder.build()), Overlay.over((), 0), ListSelection())


def policies(policy: Policy) -> ClientPolicies:
    return compile_policies(PolicySet.of([policy]), 0.0, services=CLIPS)


def test_views_that_are_still_needed_are_kept() -> None:
    first = bare().with_policies(policies(GAMES))
    assert [view.lists.selection for view in first.views] == list(policies(GAMES).selections)
    again = first.with_policies(policies(GAMES))
    assert [one is other for one, other in zip(again.views, first.views, strict=True)] == [True] * len(first.views)
    assert again.hosts is first.hosts
    other = first.with_policies(policies(SOCIAL))
    assert len(other.views) == len(first.views) > 0
    assert not {id(view) for view in other.views} & {id(view) for view in first.views}


def test_other_services_are_facts_about_hosts() -> None:
    first = bare().with_policies(policies(GAMES))
    some = Policy("default", services={"clips": True}, categories=GAMES.categories)
    serving = first.with_policies(policies(some))
    assert serving.hosts is not first.hosts
    assert serving.services is CLIPS
    assert all(view.services is CLIPS for view in serving.views)
    assert not {id(view) for view in serving.views} & {id(view) for view in first.views}
    none = serving.with_policies(None)
    assert (none.policies, none.views, bool(none.services)) == (None, (), False)
    assert none.hosts is not serving.hosts


def test_another_overlay_leaves_facts_about_hosts_that_it_does_not_change() -> None:
    first = bare().with_policies(policies(GAMES))
    overlay = Overlay.over((), 7)
    held, changed = first.with_overlay(overlay, hosts_hold=True), first.with_overlay(overlay, hosts_hold=False)
    for state, holds in ((held, True), (changed, False)):
        assert (state.hosts is first.hosts, state.scoped_hosts is first.scoped_hosts) == (holds, holds)
        assert state.host_verdicts is not first.host_verdicts
        assert state.overlay is overlay
        for view, before in zip(state.views, first.views, strict=True):
            assert (view.overlay is overlay, view.hosts is before.hosts) == (True, holds)
    assert first.overlay.seq == 0

"""Changes of lists, policies, requests and reviews, recorded and taken back."""

from collections.abc import Callable, Sequence

import pytest

from gatewayfilter.errors import ClassifyError, PolicyError, ReviewError, UndoError
from gatewayfilter.interfaces import UnblockRequest
from gatewayfilter.model import (
    Actor,
    Client,
    EntryKind,
    Group,
    ListAction,
    Matcher,
    MatcherKind,
    PauseScope,
    Policy,
    Role,
    Via,
)
from gatewayfilter.store import Store
from gatewayfilter.urls import parse_url
from gatewayfilter.use_cases.access import audit_trail
from gatewayfilter.use_cases.access.audit_trail import AuditTrail
from gatewayfilter.use_cases.access.inverses import inverse_of_approval, inverse_of_link
from gatewayfilter.use_cases.access.undo import Undo
from gatewayfilter.use_cases.policies import PolicyEditor
from gatewayfilter.use_cases.requests import RequestDecisions, Whom
from tests.use_cases.access.turned_clock import Clock

ADA = Actor("ada", Via.SESSION)
BOB = Actor("bob", Via.TOKEN, "job")


class NoReviews:
    def undo(self, task_id: int, who: str, note: str = "") -> object:
        raise ReviewError("there is no task")


def no_rules(changed: Sequence[tuple[str, int, int]]) -> None:
    raise ClassifyError(f"there are no rules: {changed}")


@pytest.fixture
def trail(store: Store, clock: Clock) -> AuditTrail:
    return AuditTrail(store, clock)


@pytest.fixture
def undo(store: Store, clock: Clock) -> Undo:
    return Undo(store, NoReviews, no_rules, clock)


@pytest.fixture
def editor(store: Store, clock: Clock) -> PolicyEditor:
    return PolicyEditor(store.policies, clock)


def block(store: Store, pattern: str = "a.example", **values: object) -> int:
    return store.lists.add_rule(ListAction.BLOCK, EntryKind.HOST, pattern, **values).rule_id  # type: ignore[arg-type]


def patterns(store: Store) -> set[tuple[str, str, str, str]]:
    return {(rule.pattern, rule.action.value, rule.comment, rule.scope) for rule in store.lists.rules()}


def kim(name: str = "kim") -> Client:
    return Client(name, (Matcher(MatcherKind.ADDRESS, "192.0.2.7"),))


CHANGES: dict[str, Callable[[Store, PolicyEditor], object]] = {
    "rule.added": lambda store, _: block(store, "new.example"),
    "rule.changed": lambda store, _: block(store, "old.example", comment="changed"),
    "rule.removed": lambda store, _: store.lists.remove_rule(1),
    "rule.switched": lambda store, _: store.lists.switch_rules([1, 2], enabled=False),
    "pause.started": lambda _, editor: editor.pause(PauseScope.ALL, "", 600.0, harm_too=False),
    "client.added": lambda _, editor: editor.add_client(Client("new", (Matcher(MatcherKind.ADDRESS, "192.0.2.8"),))),
    "client.changed": lambda _, editor: editor.set_client("kim", note="a note"),
    "client.removed": lambda _, editor: editor.remove_client("kim"),
    "client.renamed": lambda _, editor: editor.rename_client("kim", "kimberly"),
    "group.renamed": lambda _, editor: editor.rename_group("family", "household"),
    "group.removed": lambda _, editor: editor.remove_group("empty"),
    "policy.changed": lambda _, editor: editor.set_policy("kids", [("unknown", "block")], known_categories=(), known_sources=()),
    "policy.added": lambda _, editor: editor.add_policy("strict", clients=["kim"]),
}


def fill(store: Store, editor: PolicyEditor) -> None:
    block(store, "old.example", comment="as it was")
    editor.add_policy("kids")
    editor.add_group(Group("empty", "kids"))
    editor.add_client(kim())
    block(store, "hers.example", scope="client:kim")
    editor.add_group(Group("family", "kids", "all of us"))
    editor.add_client(Client("sam", (Matcher(MatcherKind.ADDRESS, "192.0.2.9"),), "family"))
    editor.pause(PauseScope.GROUP, "family", 900.0, harm_too=False)
    block(store, "theirs.example", scope="group:family")


@pytest.mark.parametrize("action", CHANGES)
def test_every_change_is_taken_back_and_made_again(
    action: str, store: Store, trail: AuditTrail, undo: Undo, editor: PolicyEditor
) -> None:
    fill(store, editor)
    before = patterns(store), store.policies.read(), [rule.enabled for rule in store.lists.rules()]
    with trail.changing(ADA, action, "what") as recording:
        CHANGES[action](store, editor)
    after = patterns(store), store.policies.read()
    assert after != before[:2] or action == "rule.switched"
    role = Role.APPROVER if action.startswith("pause.") else Role.ADMIN
    (offered,) = undo.offered(role)
    assert (offered.entry_id, offered.actor, offered.action) == (recording.entry_id, ADA, action)
    undone = undo.undo(recording.entry_id, BOB, role)
    assert (patterns(store), store.policies.read(), [rule.enabled for rule in store.lists.rules()]) == before
    assert undone.undone_by == "bob"
    with pytest.raises(UndoError, match="already, by bob"):
        undo.undo(recording.entry_id, ADA, role)
    (redo,) = undo.offered(role)
    assert (redo.action, redo.actor, redo.subject) == ("change.undone", BOB, "what")
    undo.undo(redo.entry_id, ADA, role)
    assert (patterns(store), store.policies.read()) == after


def test_pauses_that_ended_by_themselves_stay_ended(
    store: Store, trail: AuditTrail, undo: Undo, editor: PolicyEditor, clock: Clock
) -> None:
    editor.pause(PauseScope.ALL, "", 60.0, harm_too=False)
    clock.now += 120.0
    with trail.changing(ADA, "policy.added", "kids") as recording:
        editor.add_policy("kids")
    undo.undo(recording.entry_id, ADA, Role.ADMIN)
    assert not store.policies.read()


def test_what_changed_since_is_not_overwritten(store: Store, trail: AuditTrail, undo: Undo, editor: PolicyEditor) -> None:
    fill(store, editor)
    with trail.changing(ADA, "rule.added", "new.example") as rule:
        block(store, "new.example")
    with trail.changing(ADA, "client.changed", "kim") as client:
        editor.set_client("kim", note="one")
        block(store, "more.example")
    block(store, "new.example", comment="somebody else's")
    editor.set_client("kim", note="two")
    before = patterns(store), store.policies.read()
    for entry_id in (rule.entry_id, client.entry_id):
        with pytest.raises(UndoError, match="changed since"):
            undo.undo(entry_id, ADA, Role.ADMIN)
    assert (patterns(store), store.policies.read()) == before
    assert len(undo.offered(Role.ADMIN)) == 2
    assert len(store.audit.page()) == 2


def test_an_undo_that_would_leave_loose_ends_is_refused(
    store: Store, trail: AuditTrail, undo: Undo, editor: PolicyEditor
) -> None:
    with trail.changing(ADA, "policy.added", "kids") as recording:
        editor.add_policy("kids")
    editor.add_group(Group("class", "kids"))
    with pytest.raises(UndoError, match="cannot be taken back"):
        undo.undo(recording.entry_id, ADA, Role.ADMIN)
    assert store.policies.read().policies == {"kids": Policy("kids")}


def test_a_failed_change_is_neither_made_nor_recorded(store: Store, trail: AuditTrail, editor: PolicyEditor) -> None:
    def change() -> None:
        with trail.changing(ADA, "rule.added", "x"):
            block(store, "x.example")
            editor.remove_client("nobody")

    with pytest.raises(PolicyError):
        change()
    assert store.lists.rules() == []
    assert store.audit.page() == []


def test_what_changes_nothing_is_not_recorded(store: Store, trail: AuditTrail) -> None:
    block(store)
    with trail.changing(ADA, "rule.added", "a.example") as recording:
        block(store)
    assert (recording.entry_id, store.audit.page()) == (0, [])


def test_large_imports_are_recorded_without_an_inverse(store: Store, trail: AuditTrail, undo: Undo) -> None:
    with trail.changing(ADA, "rules.imported", "file") as recording:
        for number in range(2_100):
            block(store, f"h{number}.example")
    entry = store.audit.get(recording.entry_id)
    assert entry is not None
    assert entry.undo is None
    with pytest.raises(UndoError, match="no change"):
        undo.undo(recording.entry_id, ADA, Role.ADMIN)


def test_what_was_approved_waits_again(store: Store, trail: AuditTrail, undo: Undo, clock: Clock) -> None:
    request = UnblockRequest("http://a.example/x", "192.0.2.7", "list", "easylist", "", "ads", "please", clock.now)
    store.unblock.ask([request])
    number = store.unblock.open_requests()[0].request_id
    decisions = RequestDecisions(store, clock)
    approval = decisions.approve(number, lifetime_s=3600.0, site=False, whom=Whom(everybody=True))
    entry_id = trail.record(ADA, "request.approved", "a.example", undo=inverse_of_approval(approval.requests))
    assert len(store.lists.rules()) == 1
    with pytest.raises(UndoError, match="admin only"):
        undo.undo(entry_id, BOB, Role.VIEWER)
    undo.undo(entry_id, BOB, Role.APPROVER)
    assert store.lists.rules() == []
    found = store.unblock.find(number)
    assert found is not None
    assert found.state.value == "open"
    assert [request.request_id for request in store.unblock.open_requests()] == [number]
    clock.now += 1
    again = decisions.approve(number, lifetime_s=None, site=False, whom=Whom(everybody=True))
    second = trail.record(ADA, "request.approved", "a.example", undo=inverse_of_approval(again.requests))
    clock.now += 1
    decisions.deny(number)
    with pytest.raises(UndoError, match="since"):
        undo.undo(second, BOB, Role.APPROVER)


def test_links_are_revoked(store: Store, trail: AuditTrail, undo: Undo, clock: Clock) -> None:
    link = RequestDecisions(store, clock).add_link(
        parse_url("http://a.example/"), lifetime_s=60.0, once=False, site=False, whom=Whom(everybody=True)
    )
    entry_id = trail.record(ADA, "link.added", "a.example", undo=inverse_of_link(link))
    undo.undo(entry_id, ADA, Role.ADMIN)
    assert store.bypass.links()[0].revoked_at == clock.now


def test_reviews_that_were_decided_since(trail: AuditTrail, undo: Undo) -> None:
    entry_id = trail.record(ADA, "review.approved", "x", undo={"kind": "reviews", "decided": {"7": 1.0}})
    with pytest.raises(UndoError, match="since"):
        undo.undo(entry_id, ADA, Role.APPROVER)


@pytest.mark.parametrize(
    "inverse",
    [
        {},
        {"kind": "later"},
        {"kind": "lists"},
        {"kind": "lists", "rules": [[1, 2]], "items": []},
        {"kind": "link", "number": "x"},
    ],
)
def test_inverses_of_later_versions(inverse: dict[str, object], trail: AuditTrail, undo: Undo) -> None:
    entry_id = trail.record(ADA, "x.y", "z", undo=inverse)
    with pytest.raises(UndoError, match="this version"):
        undo.undo(entry_id, ADA, Role.ADMIN)


class TurnedBack:
    """Takes changes of subscriptions back: notes which."""

    def __init__(self) -> None:
        self.items: list[object] = []

    def take_back(self, pairs: Sequence[object]) -> dict[str, object]:
        self.items += pairs
        return {"kind": "sources", "items": [[None, {"name": "again"}]]}


def test_changes_of_subscriptions_are_taken_back_by_those_who_can(store: Store, trail: AuditTrail, clock: Clock) -> None:
    turned = TurnedBack()
    able, unable = (Undo(store, NoReviews, no_rules, clock, sources) for sources in (turned, None))
    entry_id = trail.record(ADA, "source.added", "ads", undo={"kind": "sources", "items": [[None, {"name": "ads"}]]})
    with pytest.raises(UndoError, match="this version"):
        unable.undo(entry_id, ADA, Role.ADMIN)
    able.undo(entry_id, ADA, Role.ADMIN)
    assert turned.items == [[None, {"name": "ads"}]]
    (redo,) = able.offered(Role.ADMIN)
    assert redo.undo == {"kind": "sources", "items": [[None, {"name": "again"}]]}
    link = RequestDecisions(store, clock).add_link(
        parse_url("http://a.example/"), lifetime_s=60.0, once=False, site=False, whom=Whom(everybody=True)
    )
    able.undo(trail.record(ADA, "link.added", "a.example", undo=inverse_of_link(link)), ADA, Role.ADMIN)
    assert (len(turned.items), store.bypass.links()[0].revoked_at) == (1, clock.now)


def test_approvers_are_offered_their_changes_among_ten_times_as_many(trail: AuditTrail, undo: Undo) -> None:
    mine = trail.record(ADA, "pause.started", "all", undo={"kind": "lists"})
    for number in range(9):
        trail.record(ADA, "rule.added", str(number), undo={"kind": "lists"})
    assert [entry.entry_id for entry in undo.offered(Role.APPROVER, limit=1)] == [mine]
    trail.record(ADA, "rule.added", "another", undo={"kind": "lists"})
    assert undo.offered(Role.APPROVER, limit=1) == []
    assert [entry.subject for entry in undo.offered(Role.ADMIN, limit=2)] == ["another", "8"]


@pytest.mark.parametrize(("rules", "kept"), [(2, True), (3, False)])
def test_a_change_of_many_steps_is_recorded_without_an_inverse(
    store: Store, trail: AuditTrail, monkeypatch: pytest.MonkeyPatch, rules: int, *, kept: bool
) -> None:
    monkeypatch.setattr(audit_trail, "_MOST_STEPS", 2)
    read = store.feed.read
    monkeypatch.setattr(store.feed, "read", lambda seq: read(seq)[:2])
    with trail.changing(ADA, "rules.imported", "file") as recording:
        for number in range(rules):
            block(store, f"h{number}.example")
    entry = store.audit.get(recording.entry_id)
    assert entry is not None
    assert (entry.undo is not None) is kept

"""A connection that passes unread is reviewed while it is open; without a policy each one is decrypted."""

from dataclasses import replace

from gatewayfilter.model import Action, HostVerdict, Reason, Verdict
from gatewayfilter.proxy.listener.connection_policy import INTERCEPT, InterceptAll, StillSpliced
from tests.case_tables import all_cases
from tests.proxy.connection_fakes import DENY, LOOK, PASS

HERE = ("192.0.2.7", "bank.example", 443, "www.bank.example", "ada")


class Policy(InterceptAll):
    """Decides as it is told, and keeps what it is asked."""

    def __init__(self, verdict: HostVerdict, *, changes: bool) -> None:
        self.verdict = verdict
        self.changes = changes
        self.told: list[tuple[object, ...]] = []

    def may_change(self) -> bool:
        return self.changes

    def judge(self, client: str, target: str, name: str = "", user: str = "") -> HostVerdict:
        self.told.append(("judge", client, target, name, user))
        return self.verdict

    def count_use(self, client: str, host: str, user: str) -> None:
        self.told.append(("use", client, host, user))

    def record(self, client: str, host: str, port: int, verdict: Verdict, started_ns: int, user: str = "") -> None:
        assert started_ns > 0
        self.told.append(("record", client, host, port, verdict.reason, user))


JUDGED = ("judge", "192.0.2.7", "bank.example", "www.bank.example", "ada")


@all_cases(
    ("verdict", "changes", "always", "passes", "told"),
    [
        (PASS, True, False, True, [JUDGED]),
        (PASS, False, True, True, [JUDGED]),
        (DENY, False, False, True, []),
        (LOOK, True, False, False, [JUDGED]),
        (replace(PASS, connect_to="192.0.2.9"), True, False, False, [JUDGED]),
        (DENY, False, True, False, [JUDGED, ("record", "192.0.2.7", "bank.example", 443, Reason.BLACKLIST, "ada")]),
    ],
)
def test_whether_an_open_connection_still_passes(
    verdict: HostVerdict, told: list[tuple[object, ...]], *, changes: bool, always: bool, passes: bool
) -> None:
    policy = Policy(verdict, changes=changes)
    assert StillSpliced(policy, *HERE, always)() is passes
    assert policy.told == told


def test_a_connection_that_leads_elsewhere_passes_while_it_does() -> None:
    policy = Policy(replace(PASS, connect_to="192.0.2.9"), changes=True)
    assert StillSpliced(policy, *HERE, always=False, connect_to="192.0.2.9")()


def test_use_counts_for_the_name_inside_or_else_the_host() -> None:
    policy = Policy(PASS, changes=True)
    whole = StillSpliced(policy, *HERE, always=False)
    whole.count_use()
    replace(whole, name="").count_use()
    assert policy.told == [("use", "192.0.2.7", "www.bank.example", "ada"), ("use", "192.0.2.7", "bank.example", "ada")]


def test_without_a_policy_every_connection_is_decrypted_and_blocks_show_a_page() -> None:
    policy = InterceptAll()
    assert policy.judge("192.0.2.7", "a.example") is INTERCEPT
    assert (INTERCEPT.verdict.action, INTERCEPT.verdict.unknown) == (Action.ALLOW, True)
    assert policy.may_change() is False
    assert policy.may_learn("192.0.2.7", "a.example") is False
    assert policy.shows_page("192.0.2.7", "a.example") is True
    policy.count_use("192.0.2.7", "a.example", "")
    policy.record("192.0.2.7", "a.example", 443, INTERCEPT.verdict, 1)

"""Pages that hand out programs which unlock and hide, told from manuals, shops and reports."""

from hypothesis import given
from hypothesis import strategies as st

from gatewayfilter.classify.score_adjustment import SIGN_CERTAINTY
from gatewayfilter.classify.signs.page_signs import sign_of
from gatewayfilter.classify.signs.unlocking import LEAST_NAMED, MAX_READ, unlocking_sign
from gatewayfilter.settings import Strictness
from tests.case_tables import all_cases
from tests.classify.bundled_classifiers import bundled

HANDED_OUT = (
    "studio suite activation tool. batch activation of every edition, status after activation is shown. dynamic string "
    "obfuscation, sandbox evasion. extract all files and start tool.exe as administrator."
)
REPORT = (
    "researchers found malware in cracked games: the loader uses sandbox evasion and obfuscation. victims ran crack.exe as "
    "administrator. attackers steal passwords; the threat is spread by cracks with a license key. never run the cracks."
)
TOLD = (
    "studio suite 4 manual: enter the license key under help, activation. run setup.exe as administrator and restart.",
    "license keys for studio suite: one license key for two computers, activation by mail, download here after payment.",
    REPORT,
    "add an exclusion to windows security if compiling is slow, then extract the zip and run the build.",
    "the library reader is modded from an old bicycle and the bans on bells are lifted.",
)


def test_what_unlocks_and_hides_has_a_sign() -> None:
    assert unlocking_sign(HANDED_OUT) == "to run 3, unlocks 3, evades 2 times"


@all_cases("text", TOLD)
def test_manuals_shops_and_reports_have_none(text: str) -> None:
    assert not unlocking_sign(text)


@all_cases("missing", ["obfuscation, sandbox evasion", "activation", "extract all files and start tool.exe as administrator"])
def test_all_three_are_needed(missing: str) -> None:
    assert not unlocking_sign(HANDED_OUT.replace(missing, "help") + " help" * LEAST_NAMED)


def test_little_and_what_stands_far_down_is_no_sign() -> None:
    assert not unlocking_sign("crack, no cracks, bypass, loader")
    assert unlocking_sign("crack, no cracks, bypass, loader, as administrator")
    assert not unlocking_sign("reading room. " * (MAX_READ // 10) + HANDED_OUT)


def test_how_often_each_is_said_at_least() -> None:
    both, run = "crack keygen bypass", "loader"
    assert unlocking_sign(f"{both} {run} {run}") == "to run 2, unlocks 2, evades 1 times"
    assert not unlocking_sign(f"{both} {run}")
    assert not unlocking_sign("crack bypass bypass loader loader loader")
    assert not unlocking_sign(f"{both} crack keygen")
    assert unlocking_sign(f"{both} {run} {run} police police")
    assert not unlocking_sign(f"{both} {run} {run} {run} police police police")
    assert [unlocking_sign(text) for text in ("crack keygen loader loader loader", f"{both} {run}", "")] == ["", "", ""]


def test_a_sign_counts_for_its_category_alone() -> None:
    assert sign_of("malware", HANDED_OUT) == f"hands out a program that hides from protection: {unlocking_sign(HANDED_OUT)}"
    assert not sign_of("gambling", HANDED_OUT)
    assert not sign_of("drugs", HANDED_OUT)


def test_a_sign_decides_and_is_named() -> None:
    text = f"{HANDED_OUT} the keygen is included, run the crack"
    standard, relaxed = (bundled(one).classify_text(text) for one in (Strictness.STANDARD, Strictness.RELAXED))
    assert standard.category == "malware"
    assert (standard.certainty or 0) >= SIGN_CERTAINTY
    assert "malware" in (relaxed.category, relaxed.doubt)


@given(st.text(st.sampled_from("crack bypass.exe loader\nkeygen off defender"), max_size=300))
def test_any_text_has_a_sign_or_none(text: str) -> None:
    assert isinstance(unlocking_sign(text), str)

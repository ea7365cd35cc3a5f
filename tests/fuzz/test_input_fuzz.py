"""Any bytes into every reader of hostile input: the short form of `make fuzz`, and the inputs that once failed."""

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.input_checks import INPUT_CHECKS, SEEDS

EXAMPLES = int(os.environ.get("GATEWAYFILTER_TEST_EXAMPLES", "300"))

CASES: tuple[tuple[str, bytes], ...] = (("canonical-url", b"\x80"),)
"""Inputs that failed once: the check, and what it got."""


def mixed(name: str) -> st.SearchStrategy[bytes]:
    """Seeds with pieces cut out, doubled, or replaced by random bytes."""
    pieces = st.one_of(st.binary(max_size=12), st.sampled_from(SEEDS[name]), st.text(max_size=12).map(lambda text: text.encode()))

    def splice(parts: tuple[bytes, int, int, bytes]) -> bytes:
        seed, begin, end, piece = parts
        return seed[: begin % (len(seed) + 1)] + piece + seed[end % (len(seed) + 1) :]

    spliced = st.tuples(st.sampled_from(SEEDS[name]), st.integers(0, 600), st.integers(0, 600), pieces).map(splice)
    return st.one_of(spliced, st.lists(pieces, max_size=5).map(b"".join), st.binary(max_size=300))


@pytest.mark.slow
@pytest.mark.parametrize("name", INPUT_CHECKS)
def test_any_input(name: str) -> None:
    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), database=None)
    @given(data=mixed(name))
    def search(data: bytes) -> None:
        INPUT_CHECKS[name](data)

    search()


@pytest.mark.parametrize(("name", "data"), [*((name, seed) for name, seeds in SEEDS.items() for seed in seeds), *CASES])
def test_what_failed_once(name: str, data: bytes) -> None:
    INPUT_CHECKS[name](data)

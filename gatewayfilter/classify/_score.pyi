from collections.abc import Iterable, Mapping

from gatewayfilter.classify.lexicon.match_filter import Meaning, Role
from gatewayfilter.classify.score import Found, ZoneHits

def best(
    found: Iterable[ZoneHits],
    factors_of: Mapping[str, Mapping[Role, float]],
    zone_factors: Mapping[str, float],
    part: Role,
    near: Role,
) -> dict[Meaning, Found]: ...
def add_up(
    counted: list[tuple[Found, float, bool]],
    zone_factors: Mapping[str, float],
    decisive_zones: Mapping[str, int],
    decisive: float,
    weak: float,
    head: float,
) -> tuple[list[Found], float, float, float, int, int, bool, bool]: ...
def heaviest(evidence: Iterable[Found], winner: str) -> list[Found]: ...

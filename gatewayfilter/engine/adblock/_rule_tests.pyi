from collections.abc import Mapping

from gatewayfilter.engine.adblock.index.compiled_rule import RuleTest
from gatewayfilter.engine.adblock.index.pattern import TailTest
from gatewayfilter.engine.adblock.index.posted_rules import Candidates
from gatewayfilter.engine.adblock.index.rule_index import RulesBetween
from gatewayfilter.engine.batches.tested_rows import TestedRows
from gatewayfilter.model import Request

class HostTail:
    begin: str
    then: TailTest | None
    def __init__(self, begin: str, then: TailTest | None) -> None: ...
    def __call__(self, request: Request, lowered: str, source: str) -> bool: ...

def first_of_each(
    rows: TestedRows,
    between: list[RulesBetween],
    literals: Mapping[int, Candidates],
    tests: Mapping[int, RuleTest],
    at: int,
) -> list[int]: ...

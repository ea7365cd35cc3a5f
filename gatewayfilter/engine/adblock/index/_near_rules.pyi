from collections.abc import Mapping

from gatewayfilter.engine.adblock.index.name_table import NameTable
from gatewayfilter.engine.adblock.index.posted_rules import Near, PostedRules, Postings

def near_rules(
    hosts: NameTable,
    host_rules: Postings,
    pages: Mapping[str, int],
    page_rules: Postings,
    everywhere: PostedRules,
    host: str,
    source: str,
    reach: int,
) -> tuple[Near, ...]: ...

"""Pages of the log for tests: whoever does not name their time has a minute.

The product ends a page after 150 ms, full or not, and says so. On a machine that is busy with other things a test's process may
not run for as long in the middle of one.
"""

from typing import Any

from gatewayfilter.store.repositories.traffic.log_search import SqlLogSearch
from gatewayfilter.use_cases.review import review_evidence
from gatewayfilter.use_cases.traffic.log_groups import grouped_page

_PAGE_S = 60.0


def install() -> None:
    """Sets it for all of the test process. Programs that the tests start have the time of the product."""
    functions: tuple[Any, ...] = (SqlLogSearch.page, grouped_page)
    for function in functions:
        function.__kwdefaults__["budget_s"] = _PAGE_S
    vars(review_evidence)["_LOG_S"] = _PAGE_S

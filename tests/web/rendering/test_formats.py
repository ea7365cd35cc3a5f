"""Numbers and times of several languages in one process."""

from collections.abc import Sequence
from itertools import permutations

import babel.core
import babel.localedata
import pytest

from gatewayfilter.web.rendering.catalogs import LANGUAGES
from gatewayfilter.web.rendering.formats import Formats


@pytest.mark.parametrize("order", [*permutations(LANGUAGES)])
def test_a_small_process_loads_one_language_after_the_other(order: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> None:
    babel.core.get_global("likely_subtags")
    assert babel.core._global_data is not None
    copy = {name: dict(table) if isinstance(table, dict) else table for name, table in babel.core._global_data.items()}
    monkeypatch.setattr(babel.core, "_global_data", copy)
    monkeypatch.setattr(babel.localedata, "_cache", {})
    for language in order:
        small, whole = Formats(language, small=True), Formats(language)
        assert small.number(41_200) == "41,200"
        for told in (small, whole):
            assert told.ago(0, 180) == {"en": "3 minutes ago", "zh": "3分钟前"}[language]
            assert told.minute(90) == {"en": "1 Jan 1970 00:01", "zh": "1970年1月1日 00:01"}[language]
            assert told.day(0) == {"en": "1 Jan 1970", "zh": "1970年1月1日"}[language]
    assert len(copy["likely_subtags"]) == 2

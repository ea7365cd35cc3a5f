"""The strategies of crawl tasks, by their names in the settings."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from gatewayfilter.errors import MissingError

if TYPE_CHECKING:
    from gatewayfilter.config import CrawlTask, Settings


def chosen_task(settings: Settings, name: str) -> CrawlTask:
    """Returns the strategy of a task.

    Raises:
        MissingError: there is none of that name.
    """
    found = settings.crawl.tasks.get(name)
    if found is None:
        near = get_close_matches(name, settings.crawl.tasks, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else "a table [crawl.tasks.NAME] in the settings makes one"
        raise MissingError(f"there is no crawl task {name!r}; {hint}")
    return found

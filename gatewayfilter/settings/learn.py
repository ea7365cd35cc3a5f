"""Settings of section `[learn]`."""

from enum import StrEnum
from pathlib import Path

from pydantic import Field

from gatewayfilter.settings.base import Section


class GrowthMode(StrEnum):
    """What happens to a page that the classifier judges harmful."""

    BLOCK = "block"
    BLOCK_AND_REVIEW = "block-and-review"
    REVIEW = "review"


class DomainGrowth(StrEnum):
    """The treatment of a host with mostly harmful pages."""

    OFF = "off"
    REVIEW = "review"
    BLOCK = "block"


class LearnSettings(Section):
    """How lists grow."""

    enabled: bool = True
    """Whether unknown pages are fetched and classified at all."""
    passive: bool = True
    """Whether a public page that certainly came from its own site is classified as it passed, instead of being fetched again."""
    block_days: float = Field(default=30.0, gt=0)
    """A learned block expires and is checked again after this many days."""
    allow_days: float = Field(default=7.0, gt=0)
    """A learned "harmless" expires and is checked again after this many days."""
    mode: GrowthMode = GrowthMode.BLOCK_AND_REVIEW
    """A page judged harmful: `block` it at once, `block-and-review` (also open a review task), or only open a `review` task."""
    modes: dict[str, GrowthMode] = Field(default={})
    """The same for single categories, e.g. `{ gambling = "review" }`; in the environment `gambling=review,adult=block`."""
    domains: DomainGrowth = DomainGrowth.REVIEW
    """A host with mostly harmful pages: only open a `review` task, `block` all of it (and open a review task), or `off`."""
    domain_pages: int = Field(default=5, ge=3)
    """Least number of harmful pages with different texts before a host counts as harmful."""
    domain_share: float = Field(default=0.5, ge=0.5, le=1)
    """Least share of a host's judged pages that must be harmful before it counts as harmful."""
    second_looks: bool = True
    """Whether what is known of a page's host, and rejected reviews, may move a verdict that is not clear."""
    trusted_hosts: tuple[Path, ...] = ()
    """Files with popular hosts (`rank,host` or a host a line) whose pages are never blocked by words alone, but reviewed."""
    trusted_public_service: bool = True
    """Whether the same holds for hosts of governments, universities and armed forces (`gov`, `edu`, `ac.uk`, `gov.cn` …)."""
    retrain: bool = True
    """Whether the model of your own is trained again by itself when enough reviews were decided since."""
    image_classifier: str = Field(default="", pattern=r"^(\w+(\.\w+)*:\w+(\.\w+)*)?$")
    """`MODULE:NAME` of an image classifier that is installed beside the filter; none is bundled."""
    max_open_reviews: int = Field(default=10_000, ge=1)
    """Most open review tasks; beyond it new ones are dropped and counted."""
    publish_after: int = Field(default=1000, ge=1)
    """Learned changes after which a new snapshot is published."""
    publish_interval_s: float = Field(default=900.0, ge=1)
    """Learned changes are published after this many seconds at the latest."""

    def mode_of(self, category: str) -> GrowthMode:
        """Returns what happens to pages of a category."""
        return self.modes.get(category, self.mode)

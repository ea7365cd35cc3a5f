"""How the lists grow: a classified page becomes an entry with evidence and an expiry, and is looked at again after it."""

from gatewayfilter.learn.growth import Growth
from gatewayfilter.learn.page_kind import is_readable
from gatewayfilter.learn.recheck import recheck_offers
from gatewayfilter.learn.sink import LearningSink

__all__ = ["Growth", "LearningSink", "is_readable", "recheck_offers"]

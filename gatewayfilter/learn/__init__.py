"""How the lists grow: a classified page becomes an entry with evidence and an expiry, and a task where a person shall look."""

from gatewayfilter.learn.content import ContentIds, load_key
from gatewayfilter.learn.growth import Growth
from gatewayfilter.learn.image_hook import load_image_classifier
from gatewayfilter.learn.intake import ReviewIntake
from gatewayfilter.learn.page_kind import is_readable
from gatewayfilter.learn.recheck import forget_surplus, recheck_offers, rejudge_offers
from gatewayfilter.learn.recognition import Recognition
from gatewayfilter.learn.review import ReviewDesk
from gatewayfilter.learn.revisits import Revisits
from gatewayfilter.learn.sink import LearningSink
from gatewayfilter.learn.user_content import UserContentHosts

__all__ = [
    "ContentIds",
    "Growth",
    "LearningSink",
    "Recognition",
    "ReviewDesk",
    "ReviewIntake",
    "Revisits",
    "UserContentHosts",
    "forget_surplus",
    "is_readable",
    "load_image_classifier",
    "load_key",
    "recheck_offers",
    "rejudge_offers",
]

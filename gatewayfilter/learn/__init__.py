"""How the lists grow: a classified page becomes an entry with evidence and an expiry, and a task where a person shall look."""

from gatewayfilter.learn.image_classifier import load_image_classifier
from gatewayfilter.learn.learning_pipeline import LearningSink
from gatewayfilter.learn.page_kind import is_readable
from gatewayfilter.learn.recheck import forget_surplus, recheck_offers, rejudge_offers
from gatewayfilter.learn.revalidation import Revisits
from gatewayfilter.learn.review.decisions import ReviewDesk
from gatewayfilter.learn.review.task_intake import ReviewIntake
from gatewayfilter.learn.verdicts.content_id import ContentIds, load_key
from gatewayfilter.learn.verdicts.list_growth import Growth
from gatewayfilter.learn.verdicts.recognition import Recognition
from gatewayfilter.learn.verdicts.user_content_hosts import UserContentHosts

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

"""Learning: a classified page becomes a list entry with evidence and an expiry, and in doubt a review task."""

from gatewayfilter.learn.image_classifier import load_image_classifier
from gatewayfilter.learn.learning_pipeline import LearningPipeline
from gatewayfilter.learn.page_kind import is_readable
from gatewayfilter.learn.recheck import forget_surplus, recheck_offers, rejudge_offers
from gatewayfilter.learn.revalidation import Revisits
from gatewayfilter.learn.review.decisions import ReviewService
from gatewayfilter.learn.review.task_intake import TaskIntake
from gatewayfilter.learn.verdicts.content_id import ContentIds, load_key
from gatewayfilter.learn.verdicts.host_listing import HostListing
from gatewayfilter.learn.verdicts.list_growth import ListGrowth
from gatewayfilter.learn.verdicts.manual_verdicts import holds_here
from gatewayfilter.learn.verdicts.recognition import Recognition
from gatewayfilter.learn.verdicts.second_look import HostSecondLook, SecondLook
from gatewayfilter.learn.verdicts.trusted_hosts import TrustedHosts
from gatewayfilter.learn.verdicts.user_content_hosts import UserContentHosts
from gatewayfilter.learn.verdicts.word_feedback import LoweredWord, WordFeedback

__all__ = [
    "ContentIds",
    "HostListing",
    "HostSecondLook",
    "LearningPipeline",
    "ListGrowth",
    "LoweredWord",
    "Recognition",
    "ReviewService",
    "Revisits",
    "SecondLook",
    "TaskIntake",
    "TrustedHosts",
    "UserContentHosts",
    "WordFeedback",
    "forget_surplus",
    "holds_here",
    "is_readable",
    "load_image_classifier",
    "load_key",
    "recheck_offers",
    "rejudge_offers",
]

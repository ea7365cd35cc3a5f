"""The data model that the packages exchange: requests and verdicts, list entries, classifications, reviews. All immutable."""

from gatewayfilter.model.certainty import CERTAINTY_LEVELS, CertaintyLevel, evidence_in_chinese, in_words, level_of
from gatewayfilter.model.classification import HOST_ZONE, Classification, Evidence, ScoreBreakdown
from gatewayfilter.model.decision import (
    PAGE_TYPES,
    Action,
    DeciderAnswer,
    Explanation,
    HostAction,
    HostVerdict,
    LogRecord,
    Reason,
    Request,
    ResourceType,
    Verdict,
)
from gatewayfilter.model.fingerprint import ContentId, ContentKind, Fingerprint
from gatewayfilter.model.list_entry import Change, ChangeKind, EntryKind, LearnedEntry, ListAction, ManualRule, Source
from gatewayfilter.model.modification import AppliedRule, BodyEdit, RequestChange, ResponseChange
from gatewayfilter.model.review_task import ReviewKind, ReviewState, ReviewStep, ReviewTask, TaskOutline

__all__ = [
    "CERTAINTY_LEVELS",
    "HOST_ZONE",
    "PAGE_TYPES",
    "Action",
    "AppliedRule",
    "BodyEdit",
    "CertaintyLevel",
    "Change",
    "ChangeKind",
    "Classification",
    "ContentId",
    "ContentKind",
    "DeciderAnswer",
    "EntryKind",
    "Evidence",
    "Explanation",
    "Fingerprint",
    "HostAction",
    "HostVerdict",
    "LearnedEntry",
    "ListAction",
    "LogRecord",
    "ManualRule",
    "Reason",
    "Request",
    "RequestChange",
    "ResourceType",
    "ResponseChange",
    "ReviewKind",
    "ReviewState",
    "ReviewStep",
    "ReviewTask",
    "ScoreBreakdown",
    "Source",
    "TaskOutline",
    "Verdict",
    "evidence_in_chinese",
    "in_words",
    "level_of",
]

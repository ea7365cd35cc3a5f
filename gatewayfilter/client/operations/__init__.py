"""The operations of the API, by subject. Written by scripts/make_api_client.py; not to be edited."""

from gatewayfilter.client.operations.learning.crawler import CrawlerApi
from gatewayfilter.client.operations.learning.extraction_rules import ExtractionRulesApi
from gatewayfilter.client.operations.learning.model import ModelApi
from gatewayfilter.client.operations.learning.reviews import ReviewsApi
from gatewayfilter.client.operations.learning.words import WordsApi
from gatewayfilter.client.operations.lists.lists import ListsApi
from gatewayfilter.client.operations.lists.rules import RulesApi
from gatewayfilter.client.operations.people.clients import ClientsApi
from gatewayfilter.client.operations.people.groups import GroupsApi
from gatewayfilter.client.operations.people.pauses import PausesApi
from gatewayfilter.client.operations.people.policies import PoliciesApi
from gatewayfilter.client.operations.people.quotas import QuotasApi
from gatewayfilter.client.operations.people.schedules import SchedulesApi
from gatewayfilter.client.operations.people.services import ServicesApi
from gatewayfilter.client.operations.system.audit import AuditApi
from gatewayfilter.client.operations.system.backup import BackupApi
from gatewayfilter.client.operations.system.https import HttpsApi
from gatewayfilter.client.operations.system.notifications import NotificationsApi
from gatewayfilter.client.operations.system.proxy_users import ProxyUsersApi
from gatewayfilter.client.operations.system.session import SessionApi
from gatewayfilter.client.operations.system.settings import SettingsApi
from gatewayfilter.client.operations.system.status import StatusApi
from gatewayfilter.client.operations.system.tokens import TokensApi
from gatewayfilter.client.operations.system.users import UsersApi
from gatewayfilter.client.operations.traffic.check import CheckApi
from gatewayfilter.client.operations.traffic.log import LogApi
from gatewayfilter.client.operations.traffic.requests import RequestsApi
from gatewayfilter.client.transport import Transport

__all__ = [
    "AuditApi",
    "BackupApi",
    "CheckApi",
    "ClientsApi",
    "CrawlerApi",
    "ExtractionRulesApi",
    "GroupsApi",
    "HttpsApi",
    "ListsApi",
    "LogApi",
    "ModelApi",
    "NotificationsApi",
    "Operations",
    "PausesApi",
    "PoliciesApi",
    "ProxyUsersApi",
    "QuotasApi",
    "RequestsApi",
    "ReviewsApi",
    "RulesApi",
    "SchedulesApi",
    "ServicesApi",
    "SessionApi",
    "SettingsApi",
    "StatusApi",
    "TokensApi",
    "UsersApi",
    "WordsApi",
]


class Operations:
    """All operations, by subject."""

    def __init__(self, transport: Transport) -> None:
        self.requests = RequestsApi(transport)
        self.check = CheckApi(transport)
        self.log = LogApi(transport)
        self.clients = ClientsApi(transport)
        self.groups = GroupsApi(transport)
        self.pauses = PausesApi(transport)
        self.policies = PoliciesApi(transport)
        self.quotas = QuotasApi(transport)
        self.schedules = SchedulesApi(transport)
        self.services = ServicesApi(transport)
        self.lists = ListsApi(transport)
        self.rules = RulesApi(transport)
        self.crawler = CrawlerApi(transport)
        self.extraction_rules = ExtractionRulesApi(transport)
        self.model = ModelApi(transport)
        self.reviews = ReviewsApi(transport)
        self.words = WordsApi(transport)
        self.audit = AuditApi(transport)
        self.backup = BackupApi(transport)
        self.status = StatusApi(transport)
        self.https = HttpsApi(transport)
        self.notifications = NotificationsApi(transport)
        self.proxy_users = ProxyUsersApi(transport)
        self.session = SessionApi(transport)
        self.settings = SettingsApi(transport)
        self.tokens = TokensApi(transport)
        self.users = UsersApi(transport)

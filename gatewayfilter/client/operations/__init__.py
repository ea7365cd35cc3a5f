"""The operations of the API, by subject. Written by scripts/make_api_client.py; not to be edited."""

from gatewayfilter.client.operations.lists.rules import RulesApi
from gatewayfilter.client.operations.system.backup import BackupApi
from gatewayfilter.client.operations.system.https import HttpsApi
from gatewayfilter.client.operations.system.settings import SettingsApi
from gatewayfilter.client.operations.system.status import StatusApi
from gatewayfilter.client.transport import Transport

__all__ = ["BackupApi", "HttpsApi", "Operations", "RulesApi", "SettingsApi", "StatusApi"]


class Operations:
    """All operations, by subject."""

    def __init__(self, transport: Transport) -> None:
        self.status = StatusApi(transport)
        self.https = HttpsApi(transport)
        self.settings = SettingsApi(transport)
        self.backup = BackupApi(transport)
        self.rules = RulesApi(transport)

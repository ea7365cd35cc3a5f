"""The operations of the API, by subject. Written by scripts/make_api_client.py; not to be edited."""

from gatewayfilter.client.operations.system.status import StatusApi
from gatewayfilter.client.transport import Transport

__all__ = ["Operations", "StatusApi"]


class Operations:
    """All operations, by subject."""

    def __init__(self, transport: Transport) -> None:
        self.status = StatusApi(transport)

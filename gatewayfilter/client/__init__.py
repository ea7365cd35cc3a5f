"""A client of the REST API: `Client("http://127.0.0.1:8081", token).status.get_status().value`."""

from gatewayfilter.client.operations import Operations
from gatewayfilter.client.transport import Answer, ApiProblem, Transport

__all__ = ["Answer", "ApiProblem", "Client"]


class Client(Operations):
    """All operations of the API, by subject.

    Args:
        url: of the dashboard, as `https://192.168.1.1:8081`.
        token: an API token (`gatewayfilter user token`).
        timeout_s: for one answer.
        ca_file: PEM file of the authority that signed the dashboard's certificate, `""` for the system's.
    """

    def __init__(self, url: str, token: str, *, timeout_s: float = 30.0, ca_file: str = "") -> None:
        super().__init__(Transport(url, token, timeout_s=timeout_s, ca_file=ca_file))

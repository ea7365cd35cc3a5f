"""The authenticator of a dashboard without accounts."""

from fastapi import Request

from gatewayfilter.web.access.identity import Identity


class NobodyMayEnter:
    """Identifies nobody."""

    def identify(self, request: Request) -> Identity | None:
        """Returns `None`."""
        del request
        return None

"""The actor of a change, for the audit log."""

from gatewayfilter.model import Actor, Via
from gatewayfilter.web.access.identity import Identity


def actor_of(identity: Identity) -> Actor:
    """Returns who makes a change: by a session where forms repeat a token, else by a token of the API."""
    return Actor(identity.name, Via.SESSION if identity.csrf else Via.TOKEN)

"""GatewayFilter: an inline HTTP/HTTPS filter for a LAN's way out that explains each decision and learns unknown pages."""

__version__ = "0.2.0.dev0"

"""An ICAP server (RFC 3507): requests are decided, and pages judged, for proxies and firewalls that adapt content by it."""

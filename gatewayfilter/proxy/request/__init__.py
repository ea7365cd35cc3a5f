"""From a mitmproxy flow to a request."""

"""The integration with mitmproxy."""

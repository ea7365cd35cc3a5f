"""The integration with mitmproxy; install.py lists all of it."""

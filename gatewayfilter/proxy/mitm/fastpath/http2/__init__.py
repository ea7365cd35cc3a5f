"""The fast path of HTTP/2: plain streams without h2's and mitmproxy's events."""

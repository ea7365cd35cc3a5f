"""The fast path: plain exchanges through mitmproxy's layers without their generators."""

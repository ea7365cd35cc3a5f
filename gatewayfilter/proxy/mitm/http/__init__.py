"""HTTP connections as mitmproxy makes them, with the bounds, trailers and error pages that it lacks."""

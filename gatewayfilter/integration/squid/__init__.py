"""squid's helper protocols: the helper process, which squid starts, and the decisions on its requests."""

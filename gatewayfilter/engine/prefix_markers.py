"""Markers: entries of a table that say "this host has prefix entries": prefixes are only tried for hosts that have any."""


def prefix_marker(key: str) -> str | None:
    """Returns the key that says "this host has prefix entries" (`host**`) for a prefix key, `None` for any other key."""
    return f"{key.partition('/')[0]}**" if key.endswith("/*") else None

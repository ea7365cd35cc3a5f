"""The frontier's side of the crawler: leases, the hash ring, seen URLs."""

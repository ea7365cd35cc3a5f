"""The crawler's use of the frontier: leases, the hash ring, seen URLs."""

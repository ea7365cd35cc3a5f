"""Batches of requests, decided together: what depends on host and page alone is computed once for all their requests."""

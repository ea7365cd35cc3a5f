"""Readers of the decision log: overview, grouped pages and live records."""

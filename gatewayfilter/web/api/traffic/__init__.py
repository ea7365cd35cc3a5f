"""The API of decisions: overview, log, reports, requests."""

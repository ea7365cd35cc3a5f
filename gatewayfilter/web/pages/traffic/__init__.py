"""The pages of decisions: overview, log, reports, requests."""

"""Decisions over HTTP: JSON for any program, and Envoy's external authorization."""

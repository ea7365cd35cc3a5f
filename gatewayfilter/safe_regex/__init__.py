"""Untrusted regular expressions: syntax, cost limits, linear-time engine."""

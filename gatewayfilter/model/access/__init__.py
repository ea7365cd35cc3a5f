"""Accounts of the dashboard, their sessions and tokens, and the audit log."""

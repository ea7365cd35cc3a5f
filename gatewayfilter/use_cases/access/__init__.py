"""Accounts of the dashboard: passwords, second factors, log-in, sessions, tokens, the audit log and its undo."""

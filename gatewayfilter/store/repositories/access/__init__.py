"""Repositories of accounts, sessions, tokens, the audit log and answers to repeated requests."""

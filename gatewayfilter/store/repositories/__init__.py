"""Repositories: one class a table or group of tables."""

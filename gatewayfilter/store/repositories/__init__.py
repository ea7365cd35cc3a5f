"""Repositories: one class per table or group of tables."""

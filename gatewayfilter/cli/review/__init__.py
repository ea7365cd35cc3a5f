"""The review command."""

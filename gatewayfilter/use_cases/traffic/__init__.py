"""Readers of the decision log, acts on its records, and answers to requests to unblock pages."""

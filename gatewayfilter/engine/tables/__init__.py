"""Digest tables: Bloom filters, bitmap hash tables, source sets."""

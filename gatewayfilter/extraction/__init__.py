"""Extraction rules: which part of a site's pages is read."""

"""Bytes to text: the charset of a document."""

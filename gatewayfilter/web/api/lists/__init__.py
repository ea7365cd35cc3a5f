"""The API of rules, sources and the check of a URL."""

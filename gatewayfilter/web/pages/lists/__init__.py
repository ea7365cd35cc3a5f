"""The pages of rules, sources and the check of a URL."""

"""The crawler as modules that run apart: scheduler, fetchers, parsers and storage, which exchange messages."""

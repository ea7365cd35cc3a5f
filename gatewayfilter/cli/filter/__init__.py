"""Commands that run the filter and query it: run, check, match."""

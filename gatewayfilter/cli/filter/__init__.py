"""Commands that run the filter and ask it: run, check, match."""

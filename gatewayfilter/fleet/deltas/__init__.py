"""Deltas: what turns one exported snapshot into the next, as changes of its entries in place of changed blocks."""

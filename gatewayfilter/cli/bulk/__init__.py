"""Bulk commands: JSON lines in and out, on all cores, in order, with bounded memory."""

"""Manual review: tasks, decisions, undo, near-duplicates."""

"""Reviews by a person: tasks, decisions, undo, near-duplicates."""

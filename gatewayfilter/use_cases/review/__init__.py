"""Reviews of learned pages: tasks, their evidence, decisions, and what else a decision lifts."""

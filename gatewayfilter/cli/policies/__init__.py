"""Commands for clients, groups, policies, schedules and pauses."""

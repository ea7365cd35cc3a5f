"""The pages of clients, groups, policies, schedules, quotas, services and pauses."""

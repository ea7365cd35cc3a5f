"""The API of clients, groups, policies, schedules, quotas, services and pauses."""

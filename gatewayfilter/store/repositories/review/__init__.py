"""Tables of people's decisions: review tasks, their history, sites of tasks, and requests to unblock."""

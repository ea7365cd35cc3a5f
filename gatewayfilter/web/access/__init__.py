"""Who may do what: identities, roles, the checks of each request before its handler runs."""

"""IP addresses: what kind each is, which belong to this machine and its links, and which a client of the proxy may reach."""

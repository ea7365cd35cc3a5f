"""Authentication of clients, and of the proxy to its parent."""

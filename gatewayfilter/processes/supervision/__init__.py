"""Child processes: start, heartbeat, restart, listening sockets, systemd."""

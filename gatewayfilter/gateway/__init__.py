"""The gateway: firewall rules and forwarding, PAC files, and the diagnostic checks of `doctor`."""

"""The box itself: firewall rules and forwarding, PAC files, and the doctor that looks for what is wrong."""

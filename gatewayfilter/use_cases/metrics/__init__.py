"""The counters of all processes: read from their status files, and written for Prometheus."""

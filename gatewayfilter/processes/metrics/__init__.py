"""The counters of all processes in the exposition format of Prometheus: collected from the status files, served by HTTP."""

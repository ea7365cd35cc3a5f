"""Processes that exchange with other machines: what they wait for, no request waits for."""

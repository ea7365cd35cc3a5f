"""Policies, compiled: which client a request comes from, and what is in force for it at an instant."""

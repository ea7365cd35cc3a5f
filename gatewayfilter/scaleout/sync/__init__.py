"""Gateways with equal rights that keep manual rules, policies and sources in step, over a state that they share."""

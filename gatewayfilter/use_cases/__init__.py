"""Use cases of commands, API and dashboard, without printing: settings, policies, status, lists, learning, backups.

A command in `gatewayfilter.cli` reads its arguments, calls one of these functions and shows what it returned.
"""

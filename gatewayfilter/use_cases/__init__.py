"""Use cases of the commands, without printing: crawl URLs now, fetch and judge one page, check proxies.

A command in `gatewayfilter.cli` reads its arguments, calls one of these functions and shows what it returned.
"""

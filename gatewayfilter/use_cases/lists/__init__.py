"""Use cases of lists: manual rules, subscriptions, what a URL meets.

Each takes store, settings and values, and returns frozen values or raises `GatewayFilterError`. A command, the API and a page
call the same function.
"""

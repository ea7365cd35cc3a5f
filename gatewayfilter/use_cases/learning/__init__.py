"""Use cases of learning: review tasks, words, the crawler's queue, extraction rules.

Each takes store, settings and values, and returns frozen values or raises `GatewayFilterError`. A command, the API and a page
call the same function.
"""

"""The proxy: mitmproxy flows become requests, verdicts become responses.

Importing this package imports nothing: mitmproxy and cryptography take a second, and commands such as `check` need neither.
"""

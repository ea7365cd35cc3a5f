"""The way in and out: mitmproxy flows become requests, verdicts become answers.

Importing this package imports nothing: mitmproxy and cryptography take a second, and commands such as `check` need neither.
"""

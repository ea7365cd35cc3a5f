"""The command line: `main` is the `gatewayfilter` command; each command's module is imported when it is called."""

from gatewayfilter.cli.root import main

__all__ = ["main"]

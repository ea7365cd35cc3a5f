"""`python -m gatewayfilter.cli`: the same as the `gatewayfilter` command."""

from gatewayfilter.cli.root import main

if __name__ == "__main__":
    main(prog_name="gatewayfilter")

"""GatewayFilter under a stock mitmproxy: ``mitmdump -s addons/gatewayfilter_addon.py``.

Settings come from the same file and environment as those of `gatewayfilter run`; mitmproxy's options set where it listens.
"""

from gatewayfilter.processes.mitmdump import standalone_addons

addons = standalone_addons()

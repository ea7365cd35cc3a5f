"""GatewayFilter under a stock mitmproxy: ``mitmdump -s addons/gatewayfilter_addon.py``.

Settings come from the same file and environment as those of `gatewayfilter run`; where it listens is mitmproxy's to say.
"""

from gatewayfilter.processes.mitmdump import standalone_addons

addons = standalone_addons()

"""Integration with other proxies and resolvers: squid's helpers, ICAP, HTTP decisions, response policy zones.

It sees protocols of `interfaces/` alone; `gatewayfilter.wiring.integration` joins it with engine, log and queues. This
module and that of `squid/` import nothing: squid's helper process loads them.
"""

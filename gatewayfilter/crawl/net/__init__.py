"""The crawler's network: address guard, DNS, outbound proxies, limits."""

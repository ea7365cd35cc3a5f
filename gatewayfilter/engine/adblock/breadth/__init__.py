"""Refuses rules of lists that speak of the web as a whole: one line must not cut off everybody who subscribes."""

from gatewayfilter.engine.adblock.breadth.cosmetic_breadth import cosmetic_refusal
from gatewayfilter.engine.adblock.breadth.network_breadth import BreadthGuard

__all__ = ["BreadthGuard", "cosmetic_refusal"]

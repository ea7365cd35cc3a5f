"""Breadth checks: refuse list rules that match most of the web. One bad line must not cut off every subscriber."""

from gatewayfilter.engine.adblock.breadth.cosmetic_breadth import cosmetic_refusal
from gatewayfilter.engine.adblock.breadth.network_breadth import BreadthGuard

__all__ = ["BreadthGuard", "cosmetic_refusal"]

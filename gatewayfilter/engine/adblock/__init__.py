"""Adblock network rules (EasyList, uBlock Origin, AdGuard): parser, compiled form, matcher. All options: docs/adblock.md."""

from gatewayfilter.engine.adblock.builder import AdblockBuilder
from gatewayfilter.engine.adblock.matcher import AdblockMatcher
from gatewayfilter.engine.adblock.rule import AdblockMatch, AdblockReport

__all__ = ["AdblockBuilder", "AdblockMatch", "AdblockMatcher", "AdblockReport"]

"""Adblock rules (EasyList, uBlock Origin, AdGuard): parser, compiled form, matcher, effects. All options: docs/adblock.md."""

from gatewayfilter.engine.adblock.effects import AdblockEffects
from gatewayfilter.engine.adblock.matcher import AdblockMatcher
from gatewayfilter.engine.adblock.syntax.rule import AdblockMatch, AdblockReport

__all__ = ["AdblockEffects", "AdblockMatch", "AdblockMatcher", "AdblockReport"]

"""Adblock rules (EasyList, uBlock Origin, AdGuard): parser, compiled form, matcher, effects. All options: docs/adblock.md."""

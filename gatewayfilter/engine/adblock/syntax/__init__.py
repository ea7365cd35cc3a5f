"""How Adblock rules are written: parser, options, selectors, modifiers."""

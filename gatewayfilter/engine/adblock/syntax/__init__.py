"""The syntax of Adblock rules: parser, options, selectors, modifiers."""

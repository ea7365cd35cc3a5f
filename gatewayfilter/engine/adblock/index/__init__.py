"""How compiled Adblock rules are found for a request."""

"""The index of compiled Adblock rules: finds the candidate rules of a request."""

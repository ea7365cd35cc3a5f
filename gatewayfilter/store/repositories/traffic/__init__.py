"""Tables of traffic: the decision log."""

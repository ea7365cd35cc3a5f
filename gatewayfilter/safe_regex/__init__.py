"""Regular expressions from outside: syntax, cost limits, linear-time engine."""

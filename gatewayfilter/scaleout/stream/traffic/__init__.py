"""Readers of recorded traffic: lines of JSON, of squid and of Zeek, as records in Arrow."""

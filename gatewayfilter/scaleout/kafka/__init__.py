"""Kafka as an output of the filter: a producer with bounded waits, and the filter's own decisions."""

"""Traffic in streams: one batch function over Arrow record batches, and what feeds it from Kafka, Spark and files."""

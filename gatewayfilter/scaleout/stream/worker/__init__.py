"""The stream worker: a Kafka consumer group that decides traffic records."""

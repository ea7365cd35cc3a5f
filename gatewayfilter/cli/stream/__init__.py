"""Commands for recorded traffic at scale: a Kafka consumer group and a Spark job."""

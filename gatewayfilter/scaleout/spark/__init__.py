"""The Spark job: traffic records decided by Structured Streaming."""

"""Pages between fetch and classification: WARC archive, evidence, batches."""

"""Redis implementations of shared state: the cache of judged content, the crawl queue, heartbeats and the change stream."""

"""Tables of the crawler: the priority queue of URLs, its workers, and validators of fetched pages."""

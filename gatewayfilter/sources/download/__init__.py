"""A subscription's download: HTTP, archives, compression, includes."""

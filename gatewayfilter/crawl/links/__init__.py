"""Links of a page: extraction, feeds, sitemaps, images, strategies."""

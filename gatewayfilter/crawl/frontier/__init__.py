"""Which crawler takes which URL, and which URLs were seen."""

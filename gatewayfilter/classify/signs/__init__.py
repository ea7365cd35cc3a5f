"""Signs of what a page does, which decide where words and reading are not clear."""

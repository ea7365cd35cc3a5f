"""Words and phrases by category: files, the operator's own words, and the search for them in a text."""

"""From a classification to list entries: growth, recognition, content identity."""

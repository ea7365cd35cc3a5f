"""Views of a text with spelling tricks undone."""

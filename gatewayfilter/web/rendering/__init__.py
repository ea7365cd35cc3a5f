"""Pages: templates, translations, numbers and dates, navigation, static files."""

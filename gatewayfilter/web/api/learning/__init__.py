"""The API of reviews, words, crawler and extraction rules."""

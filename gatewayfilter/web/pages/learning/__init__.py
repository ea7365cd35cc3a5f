"""The pages of reviews, words, crawler and extraction rules."""

"""Rendering in a headless browser."""

"""Trained models: linear and topic model, their files and their training."""

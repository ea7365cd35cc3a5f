"""Trained models: linear and text model, calibration, their files and their training."""

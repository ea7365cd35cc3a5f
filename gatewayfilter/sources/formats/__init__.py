"""List formats: detection and readers."""

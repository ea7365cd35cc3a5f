"""Training of the bundled text model."""

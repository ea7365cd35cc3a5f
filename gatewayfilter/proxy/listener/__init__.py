"""The listener: client connections until it is clear what they carry and who handles them."""

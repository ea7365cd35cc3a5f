"""The snapshot file: format, builder, patch, reader, folder."""

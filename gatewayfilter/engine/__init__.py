"""The filter engine: snapshot, overlay, deciders. Pure: no I/O except the mapped snapshot file, no logging, no waiting."""

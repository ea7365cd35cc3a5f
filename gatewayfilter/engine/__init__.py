"""The decision, pure: snapshot, overlay, deciders. No I/O but the mapped snapshot file; nothing here logs or waits."""

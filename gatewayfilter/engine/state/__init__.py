"""The engine state that decisions read: snapshot, overlay, manual rules, look-ups, caches."""

"""The list command: manual rules, search, import and export."""

"""CSS in cosmetic rules: selectors and declarations, each parsed by a strict subset of the grammar."""

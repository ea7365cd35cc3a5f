"""Response handling: modifiers, inspection, capture."""

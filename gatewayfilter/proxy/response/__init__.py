"""What happens to a response: modifiers, inspection, capture."""

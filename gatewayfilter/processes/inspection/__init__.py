"""The inspector process, which judges pages while their clients wait."""

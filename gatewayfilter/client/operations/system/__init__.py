"""Operations of the API: system."""

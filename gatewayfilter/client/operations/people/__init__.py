"""Operations of the API: people."""

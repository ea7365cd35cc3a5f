"""Operations of the API: traffic."""

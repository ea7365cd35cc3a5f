"""Operations of the API: lists."""

"""Operations of the API: learning."""

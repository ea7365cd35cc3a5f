"""Text of others as every database stores it."""


def storable(text: str, most: int) -> str:
    """Returns text of at most `most` characters without NUL and without lone surrogates, which databases refuse."""
    return text[:most].encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")

"""Titles of categories in the language of a page."""

from gatewayfilter import wiring


class CategoryTitles:
    """Turns a category's code into its title.

    Args:
        language: `en` or `zh`.
    """

    def __init__(self, language: str) -> None:
        self._language = language
        self._registry = wiring.categories()

    def __call__(self, code: str) -> str:
        """Returns the title; an unknown code as it is."""
        found = self._registry.get(code)
        return found.title_zh if self._language == "zh" else found.title

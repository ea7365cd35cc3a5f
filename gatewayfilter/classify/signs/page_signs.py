"""By which category's signs a page is looked at."""

from gatewayfilter.classify.signs import bet_taking, unlocking


def sign_of(category: str, text: str) -> str:
    """Returns what a page does that belongs to a category, in words; `""` where nothing says so. Linear in the text.

    Args:
        category: what the words hint most at.
        text: what is visible, in its normal view.
    """
    if category == bet_taking.CATEGORY:
        sign = bet_taking.bet_taking_sign(text)
        return f"takes bets: {sign}" if sign else ""
    if category == unlocking.CATEGORY:
        sign = unlocking.unlocking_sign(text)
        return f"hands out a program that hides from protection: {sign}" if sign else ""
    return ""
